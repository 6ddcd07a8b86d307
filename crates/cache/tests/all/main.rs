//! The tests of the cache that need no process of their own. In one program, so that it is linked once.
#![cfg(not(loom))]

mod batches;
mod directed;
mod handles;
mod model;
mod operations;
mod promotions;
mod refusals;
mod room;
mod store_model;
#[cfg(all(target_os = "linux", not(miri)))]
mod surviving;
mod threads;
mod updates;
mod writers;
