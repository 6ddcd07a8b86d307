//! Items that are stored in their bucket, move there and leave it under a reader.

use alluvium_base::KeyHasher;
use alluvium_cache::{Cache, Concurrent};
use loom::sync::Arc;

use super::{PREEMPTIONS, model, spawn, value};

const HASHER: KeyHasher = KeyHasher::Xxh3 { seed: 1 };

/// The smallest cache for tiny items: one bucket of two cells, and logs for a handful.
fn tiny() -> Arc<Cache<Concurrent>> {
    let builder = Cache::builder().payload_bytes_mean(16).hasher(HASHER);
    let mut limits = (0..).step_by(64);
    Arc::new(limits.find_map(|limit| builder.clone().memory_limit(limit).build().ok()).unwrap())
}

/// An inline item that is overwritten is seen in its old or its new state.
#[test]
fn loom_an_inline_update_is_seen_whole_or_not_at_all() {
    model(PREEMPTIONS, inline_update);
}

pub fn inline_update() {
    let cache = tiny();
    cache.set(b"1234", &value::<12>(1)).unwrap();
    assert_eq!(cache.stats().total().inline_items, 1);
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(b"1234"))
    };
    cache.set(b"1234", &value::<12>(2)).unwrap();
    let seen = reader.join().unwrap().expect("it was there throughout");
    assert!(seen == value::<12>(1) || seen == value::<12>(2), "half of another value: {seen:?}");
}

/// A value that no longer fits moves to the logs; a reader finds the key at all times.
#[test]
fn loom_an_item_that_outgrows_its_cell_is_never_missed() {
    model(PREEMPTIONS, || {
        let cache = tiny();
        cache.set(b"12345678", &[1; 3]).unwrap();
        let reader = {
            let cache = cache.clone();
            spawn(move || cache.get(b"12345678"))
        };
        cache.set(b"12345678", &value::<16>(2)).unwrap();
        let seen = reader.join().unwrap().expect("it was there throughout");
        assert!(seen == [1; 3] || seen == value::<16>(2), "{seen:?}");
        assert_eq!(cache.stats().total().inline_items, 0);
    });
}

/// An item that leaves probation for its bucket is found at all times.
#[test]
fn loom_an_item_that_comes_inline_is_never_missed() {
    model(PREEMPTIONS, item_that_comes_inline);
}

pub fn item_that_comes_inline() {
    beside_an_item_that_comes_inline(|cache| cache.get(b"third---"));
}

/// An item that occupies the home of a new item is found at all times.
#[test]
fn loom_an_item_that_makes_way_in_its_bucket_is_never_missed() {
    model(PREEMPTIONS, || {
        let cache = tiny();
        // The first cell is the home of items whose tags start with a 0 bit, the second of the others.
        let keys = |first_bit: u64| {
            let candidates = (1_u64..).map(u64::to_le_bytes);
            candidates.filter(move |key| HASHER.hash(key).low() >> 15 & 1 == first_bit)
        };
        let others: Vec<[u8; 8]> = keys(0).take(2).collect();
        for key in &others {
            cache.set(key, &value::<8>(1)).unwrap();
        }
        assert!(cache.remove(&others[0]));
        let reader = {
            let (cache, key) = (cache.clone(), others[1]);
            spawn(move || cache.get(&key))
        };
        cache.set(&keys(1).next().unwrap(), &value::<8>(2)).unwrap();
        assert_eq!(reader.join().unwrap(), Some(value::<8>(1).to_vec()));
        assert_eq!(cache.stats().total().inline_items, 2);
    });
}

/// A scan visits an item that leaves probation for its bucket exactly once.
#[test]
fn loom_a_scan_visits_an_item_that_comes_inline_once() {
    // One more preemption would take minutes, because this story makes many accesses.
    model(PREEMPTIONS - 1, || {
        beside_an_item_that_comes_inline(|cache| {
            let mut found = cache.iter().filter(|item| item.key == b"third---");
            let value = found.next().map(|item| item.value);
            assert_eq!(found.next(), None, "visited twice");
            value
        });
    });
}

fn beside_an_item_that_comes_inline(look: fn(&Cache<Concurrent>) -> Option<Vec<u8>>) {
    let cache = tiny();
    for key in [b"first---", b"second--", b"third---"] {
        cache.set(key, &value::<8>(1)).unwrap();
    }
    // The third found both cells taken. One is free when it leaves probation, at the fourth of these sets.
    assert!(cache.remove(b"first---"));
    let next = |number: u8| cache.set(&[number; 8], &value::<16>(number)).unwrap();
    (0..3).for_each(next);
    assert_eq!(cache.stats().total().inline_items, 1);
    let reader = {
        let cache = cache.clone();
        spawn(move || look(&cache))
    };
    next(3);
    let seen = reader.join().unwrap().expect("it was there throughout");
    assert!(seen == value::<8>(1), "half of another value: {seen:?}");
    assert_eq!(cache.stats().total().inline_items, 2);
}
