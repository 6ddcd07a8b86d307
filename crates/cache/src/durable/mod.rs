//! A cache whose content survives: NVMcached (Wu's thesis, chapter 5), over a mapped file.
//!
//! ```text
//!  hash ──► bucket [ descriptor ×7 ]  ──► zone [ item ][ item ] …     in the file
//!           beside [ version | counts, verified ]                     in memory
//! ```
//!
//! A descriptor has the version of its zone and a checksum over the item, seeded by itself. So an item can be written
//! without making any store wait for another: what a crash leaves of it is whole or fails the checksum. Only what makes
//! an item absent is flushed: a replaced or removed descriptor, and the new version of a zone that is to be written
//! again, which makes all its items absent at once (`clean.rs`). Nothing is scanned when the file is opened. An item is
//! verified when it is first read.
//!
//! With compression, cleaning packs items that were not used into blocks ([`block`], [`pack`]) that several descriptors
//! point to, and a second get takes an item out again ([`promote`]).
//!
//! Items that are set often can have their place in memory instead, in [`write_cache`].
//!
//! [`medium`] says what survives, [`file_medium`] is the real one and `simulated` the one of the tests. Readers work as
//! in other caches: they take no lock and validate by the version of the bucket, which is not in the file, and by that
//! of the zone.
//!
//! Architecture invariant: what a crash leaves is, for each key, its last item or none. A line that may survive with an
//! older descriptor is flushed before the write returns that made this descriptor wrong.
//!
//! Architecture invariant: no byte of the file is trusted. The header and the tables are checked when it is opened,
//! descriptors and items whenever they are read.

// The model checker sees the partitions over words in memory, not their opening.
#![cfg_attr(loom, allow(dead_code))]

mod beside;
mod block;
#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod cache;
mod clean;
#[cfg(all(any(test, feature = "simulation"), not(loom)))]
mod compressed_seed;
mod core;
mod descriptor;
mod dictionaries;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod file_medium;
#[cfg(all(any(test, feature = "simulation"), not(loom)))]
pub mod fuzz;
mod geometry;
#[cfg(not(loom))]
mod header;
mod hot;
mod medium;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
mod open;
mod pack;
mod packing;
mod part;
mod promote;
mod shared;
#[cfg(all(any(test, feature = "simulation"), not(loom)))]
mod simulated;
#[cfg(all(any(test, feature = "simulation"), not(loom)))]
pub mod simulation;
#[cfg(not(loom))]
mod stats;
mod stored_item;
#[cfg(all(any(test, feature = "simulation"), not(loom)))]
mod summary;
mod write;
mod write_cache;

#[cfg(not(loom))]
pub use builder::SurvivingBuilder;
#[cfg(not(loom))]
pub use cache::SurvivingCache;
#[cfg(not(loom))]
pub use error::SurviveError;
#[cfg(not(loom))]
pub use file_medium::Survive;
#[cfg(all(feature = "simulation", not(loom)))]
pub use medium::Mistake;
#[cfg(loom)]
pub use model::Model;
#[cfg(not(loom))]
pub use open::Opened;
#[cfg(not(loom))]
pub use stats::SurvivingStats;
