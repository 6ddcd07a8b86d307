//! The memory engine: a cache of very many small items, after MICA (Lim's thesis, chapter 5; NSDI 2014).
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
//! A cache is made of partitions by key hash. Each has a lossy index, buckets of fifteen entries in two cache lines,
//! and circular logs in which items lie one behind another:
//!
//! ```text
//!  hash ──► bucket [version | counts | tag+position ×15] ──► log [ header | key | value ][ ... ]
//!                                                                 ▲ head: evicted      ▲ tail: appended
//! ```
//!
//! Goals: two memory accesses per get, overlapped in batches; few bytes beside an item's own; an eviction policy that
//! is good at skew, scans and drift at once; one number for the memory, which holds.
//!
//! [`Store`] is the same without eviction: it refuses what it has no room for.
//!
//! Not a goal: durability. What a cache holds is gone with the process.
//!
//! Architecture invariant: a cache may forget, never lie. Equality is always that of the full key; what a reader beside
//! a writer has seen counts only after it was validated.
//!
//! Architecture invariant: all shared memory is accessed atomically, or by loads and stores written out that are
//! validated like those. `unsafe` stands in the leaf modules of `memory`, in `partition/lend.rs` and `index/tags.rs`,
//! and in the declarations that zeros are a value of what lies in arrays.

mod access;
mod cache;
mod canary;
mod claim;
mod error;
mod eviction;
mod ghost;
mod hasher;
mod index;
mod inline;
mod item;
mod limits;
mod log;
mod memory;
mod partition;
mod pipeline;
mod reentry;
mod store;
mod stripe;
mod sync;
mod typed;

#[cfg(loom)]
#[doc(hidden)]
pub use canary::{Canary, break_rule};

pub use access::{Access, Concurrent, ConcurrentReads, Exclusive, SharedWrites};
pub use cache::{
    BATCH_LEN, Builder, Cache, Cursor, IncrementError, Outcome, OwnedItem, PartitionStats, SetOptions, Stats,
    Update, Writer,
};
pub use error::{BuildError, ClaimError, OtherPartition, TooLarge, WriteError};
pub use eviction::Eviction;
pub use item::{ItemView, KEY_BYTES_MAX, Token};
pub use store::{OutOfSpace, Store, StoreBuilder, StoreStats, StoreWriter};
pub use typed::{Coded, TypedCache, TypedWriter};
