//! The C interface of Alluvium: `include/alluvium.h` is its documentation, and is generated from this crate.
//!
//! Each file with exported functions is a section of the header: its module comment introduces the section, and the
//! comments of its items become those of the declarations. So both are written for people who read C.
//! `tests/header.rs` shows that the header is the one that these files make.
//!
//! Architecture invariant: no exported function unwinds, and none touches memory before `raw` has checked the pointer
//! to it. What C passes is used through `raw::Given` alone.
//!
//! Architecture invariant: a value of the engine is reached through `living::Living`, which refuses it in a forked
//! process.
#![expect(non_camel_case_types, reason = "the names are those of C")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of all exported functions is the header's first page"
)]
#![deny(unsafe_op_in_unsafe_fn)]

mod allocation;
pub mod batch;
pub mod cache;
pub mod cache_options;
pub mod cache_update;
mod column;
pub mod database;
pub mod error;
mod failure;
pub mod ingest;
pub mod item;
pub mod iterator;
pub mod keyspace;
mod living;
pub mod many;
pub mod memory;
pub mod options;
mod raw;
pub mod report;
mod settings;
pub mod snapshot;
pub mod version;

/// What many threads may use, as the header says of handles that are passed as pointers to const.
const fn is_shared<T: Send + Sync>() {}
/// What one thread at a time may use.
const fn is_moved<T: Send>() {}

const _: () = {
    is_shared::<error::alluvium_error>();
    is_shared::<database::alluvium_db>();
    is_shared::<keyspace::alluvium_keyspace>();
    is_shared::<snapshot::alluvium_snapshot>();
    is_shared::<cache::alluvium_cache>();
    is_shared::<options::alluvium_options>();
    is_shared::<keyspace::alluvium_keyspace_options>();
    is_shared::<cache_options::alluvium_cache_options>();
    is_moved::<batch::alluvium_batch>();
    is_moved::<iterator::alluvium_iterator>();
    is_moved::<ingest::alluvium_ingest>();
};
