//! Readers beside the writer of a cache, in every interleaving and every order of memory that the declared orderings
//! allow: `cargo xtask loom`.
//!
//! Under loom pages have 64 bytes, so that a log holds a handful of items and the next set evicts the oldest; buckets
//! have four entries. The rules that make the stories end well are broken one by one in `canaries`.
#![cfg(loom)]

mod canaries;
mod evictions;
mod reads;
mod stores;

use alluvium_base::KeyHasher;
use alluvium_cache::{Access, Cache, Eviction};
use loom::sync::Arc;

/// Preemptions explored.
const PREEMPTIONS: usize = 3;

/// A value of one byte repeated: a mixture of two is noticed.
fn value<const BYTES: usize>(stamp: u8) -> [u8; BYTES] {
    [stamp; BYTES]
}

/// A cache with room for a handful of items of 8+16 bytes.
fn small<A: Access>(eviction: Eviction) -> Arc<Cache<A>> {
    let cache = Cache::builder()
        .payload_bytes_mean(24)
        .eviction(eviction)
        .hasher(KeyHasher::Xxh3 { seed: 1 })
        .room_for(6)
        .build_as()
        .unwrap();
    Arc::new(cache)
}

/// Tells a story in every way that it can go.
fn model(preemptions: usize, story: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1_000_000;
    builder.preemption_bound = Some(preemptions);
    builder.check(story);
}
