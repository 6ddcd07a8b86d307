//! Readers beside the writer of a cache, in every interleaving and every order of memory that the declared orderings
//! allow: `cargo xtask loom`.
//!
//! Under loom pages have 64 bytes, so that a log holds a handful of items and the next set evicts the oldest; buckets
//! have four entries. `canaries` breaks the rules on which the tests depend one by one.
#![cfg(loom)]

mod canaries;
mod evictions;
mod inline;
mod reads;
mod stores;
mod surviving;
mod zone;

use alluvium_base::KeyHasher;
use alluvium_cache::{Access, Cache, Eviction};
use loom::sync::Arc;
use loom::thread;

/// Number of preemptions explored, unless `LOOM_MAX_PREEMPTIONS` sets fewer.
const PREEMPTIONS: usize = 3;

/// A value of one byte repeated: a mixture of two is detected.
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

/// Words of a thread's stack: loom's own stacks are too small for what a cache inlines.
const STACK_WORDS: usize = 1 << 15;

/// Starts a thread of a test.
fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
    thread::Builder::new().stack_size(STACK_WORDS).spawn(body).unwrap()
}

/// Runs a test in all interleavings.
fn model(preemptions: usize, story: impl Fn() + Copy + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1_000_000;
    let allowed = builder.preemption_bound.unwrap_or(preemptions);
    builder.preemption_bound = Some(preemptions.min(allowed));
    builder.check(move || spawn(story).join().unwrap());
}
