//! The memory engine: a cache of a great number of small items, after MICA (Lim's thesis, chapter 5; NSDI 2014).
//!
//! ```
//! use alluvium_cache::Cache;
//!
//! let cache = Cache::builder().memory_limit(16 << 20).build()?;
//! cache.set(b"key", b"value")?;
//! assert_eq!(cache.get(b"key").as_deref(), Some(&b"value"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A cache is divided into partitions by key hash. Each partition has a lossy index, made of buckets of fifteen entries
//! in two cache lines, and circular logs that store items one after another:
//!
//! ```text
//!  hash ──► bucket [version | counts | tag+position ×15] ──► log [ header | key | value ][ ... ]
//!                                                                 ▲ head: evicted      ▲ tail: appended
//! ```
//!
//! Goals: two memory accesses per get, overlapped in batches; few bytes of overhead per item; an eviction policy that
//! copes with skew, scans and drift at once; a single memory limit, which is kept.
//!
//! [`Store`] is the same without eviction: it refuses items for which it has no room. Both are partitions with another
//! policy, index and region.
//!
//! Durability is not a goal: the contents of a cache are lost when the process ends. A [`SurvivingCache`] keeps them in
//! a file, and still may forget any of them.
//!
//! Architecture invariant: a cache may forget an item, but never returns a wrong one. Full keys are always compared;
//! what a reader saw beside a writer counts only after it was validated.
//!
//! Architecture invariant: all shared memory is accessed atomically, or by explicit load and store instructions whose
//! results are validated in the same way. `unsafe` is confined to the leaf modules of `memory`, to `partition/lend.rs`
//! and `index/tags.rs`, and to the declarations that zeros are a valid value of the elements of arrays.

mod access;
mod cache;
mod canary;
mod claim;
#[cfg(all(target_os = "linux", not(miri)))]
mod durable;
mod error;
mod evicting;
mod eviction;
mod hasher;
mod index;
mod inline;
mod item;
mod limits;
mod memory;
mod partition;
mod partitions;
mod pipeline;
mod reentry;
mod refusing;
mod region;
mod store;
mod stripe;
mod sync;
mod typed;
mod zone;

pub use alluvium_io::Clock;

#[cfg(loom)]
#[doc(hidden)]
pub use canary::{Canary, break_rule};
#[cfg(loom)]
#[doc(hidden)]
pub use durable::Model;

pub use access::{Access, Concurrent, ConcurrentReads, Exclusive, SharedWrites};
pub use cache::{
    Builder, Cache, Compressed, Cursor, Era, IncrementError, Outcome, OwnedItem, SetOptions, Stats, Update,
    Writer,
};
#[cfg(all(target_os = "linux", not(miri), not(loom), feature = "simulation"))]
#[doc(hidden)]
pub use durable::{Mistake, fuzz, simulation};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub use durable::{Opened, Survive, SurviveError, SurvivingBuilder, SurvivingCache, SurvivingStats};
pub use error::{BuildError, ClaimError, OtherPartition, TooLarge, WriteError};
pub use evicting::PartitionStats;
pub use eviction::Eviction;
pub use item::{ItemView, KEY_BYTES_MAX, Token};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
#[doc(hidden)]
pub use memory::FlushedMemory;
pub use pipeline::BATCH_LEN;
pub use refusing::OutOfSpace;
pub use store::{Store, StoreBuilder, StoreStats, StoreWriter};
pub use typed::{Coded, TypedCache, TypedWriter};
pub use zone::{Codec, ZoneStats};
