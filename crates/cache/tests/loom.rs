//! Readers beside the writer of a cache, in every interleaving and every order of memory that the declared orderings
//! allow: `cargo xtask loom`.
//!
//! Under loom pages have 64 bytes, so that a log holds a handful of items and the next set evicts the oldest.
#![cfg(loom)]

use std::time::Duration;

use alluvium_base::KeyHasher;
use alluvium_cache::{Cache, Concurrent, Eviction, SetOptions};
use loom::sync::Arc;
use loom::thread;

/// A value of one byte repeated: a mixture of two is noticed.
fn value(stamp: u8) -> [u8; 16] {
    [stamp; 16]
}

fn small(eviction: Eviction) -> Arc<Cache<Concurrent>> {
    let cache = Cache::builder()
        .payload_bytes_mean(24)
        .eviction(eviction)
        .hasher(KeyHasher::Xxh3 { seed: 1 })
        .room_for(4)
        .build()
        .unwrap();
    Arc::new(cache)
}

/// Preemptions explored. Evictions that look at the index take so many steps that two would take hours; the one here
/// is that of FIFO.
const PREEMPTIONS: usize = 2;

fn model(preemptions: usize, story: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1_000_000;
    builder.preemption_bound = Some(preemptions);
    builder.check(story);
}

/// Fills the log until the next set must evict, oldest first key 0. Returns the number of the next key.
fn fill(cache: &Cache<Concurrent>) -> u64 {
    let mut number = 0_u64;
    loop {
        let used = cache.stats().total().log_bytes_used;
        cache.set(&number.to_le_bytes(), &value(number as u8)).unwrap();
        number += 1;
        if cache.stats().total().log_bytes_used <= used {
            return number;
        }
        assert!(number < 100, "the log is small");
    }
}

/// An item that is overwritten in place is seen as it was or as it is.
#[test]
fn loom_an_update_in_place_is_seen_whole_or_not_at_all() {
    model(PREEMPTIONS, || {
        let cache = small(Eviction::Fifo);
        cache.set(b"12345678", &value(1)).unwrap();
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || cache.get(b"12345678"))
        };
        cache.set(b"12345678", &value(2)).unwrap();
        let seen = reader.join().unwrap().expect("it was there throughout");
        assert!(seen == value(1) || seen == value(2), "{seen:?}");
    });
}

/// A longer value goes to a new place; a reader finds the key throughout.
#[test]
fn loom_an_item_that_moves_is_never_missed() {
    model(PREEMPTIONS, || {
        let cache = small(Eviction::ApproximateLru);
        cache.set(b"12345678", &[1; 3]).unwrap();
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || cache.get(b"12345678"))
        };
        cache.set(b"12345678", &value(2)).unwrap();
        let seen = reader.join().unwrap().expect("it was there throughout");
        assert!(seen == [1; 3] || seen == value(2), "{seen:?}");
    });
}

/// The log comes round: a set evicts the oldest item and writes over it while a reader looks at it. The reader sees the
/// item whole or nothing, never bytes of the new one.
fn an_evicted_item_is_whole_or_absent(eviction: Eviction, preemptions: usize) {
    model(preemptions, move || {
        let cache = small(eviction);
        let next = fill(&cache);
        // Which key is the oldest now.
        let oldest =
            (0..next).find(|number| cache.get(&number.to_le_bytes()).is_some()).expect("some key is there");
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || cache.get(&oldest.to_le_bytes()))
        };
        cache.set(&next.to_le_bytes(), &value(0xee)).unwrap();
        if let Some(seen) = reader.join().unwrap() {
            assert_eq!(seen, value(oldest as u8));
        }
    });
}

/// Under FIFO nothing but the log's head tells that an entry dangles.
#[test]
fn loom_a_dangling_entry_is_noticed() {
    an_evicted_item_is_whole_or_absent(Eviction::Fifo, PREEMPTIONS);
}

/// A removed key's entry is gone with the version's change.
#[test]
fn loom_a_removal_is_seen_whole_or_not_at_all() {
    model(PREEMPTIONS, || {
        let cache = small(Eviction::Fifo);
        let options = SetOptions { time_to_live: Some(Duration::from_secs(1000)), flags: 0 };
        cache.set_with(b"12345678", &value(1), options).unwrap();
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || cache.get(b"12345678"))
        };
        assert!(cache.remove(b"12345678"));
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == value(1)));
        assert_eq!(cache.get(b"12345678"), None);
    });
}

/// A partition that is resized hands readers over to its new memory: they find the item, or miss it while it moves.
#[test]
fn loom_a_resize_beside_a_reader_never_lies() {
    model(PREEMPTIONS, || {
        let cache = small(Eviction::Fifo);
        cache.set(b"12345678", &value(1)).unwrap();
        let limit = cache.stats().total().memory_bytes as usize;
        let reader = {
            let cache = cache.clone();
            thread::spawn(move || cache.get(b"12345678"))
        };
        cache.resize(limit + 256).unwrap();
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == value(1)));
        assert_eq!(cache.get(b"12345678").as_deref(), Some(&value(1)[..]));
    });
}
