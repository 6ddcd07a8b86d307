//! Items that are changed, moved and removed under a reader.

use std::time::Duration;

use alluvium_base::KeyHasher;
use alluvium_cache::{Cache, Concurrent, Eviction, SetOptions};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering};

use super::{PREEMPTIONS, model, small, spawn, value};

/// An item that is overwritten in place is seen in its old or its new state.
#[test]
fn loom_an_update_in_place_is_seen_whole_or_not_at_all() {
    model(PREEMPTIONS, update_in_place);
}

pub fn update_in_place() {
    let cache = small::<Concurrent>(Eviction::Fifo);
    cache.set(b"12345678", &value::<16>(1)).unwrap();
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(b"12345678"))
    };
    cache.set(b"12345678", &value::<16>(2)).unwrap();
    let seen = reader.join().unwrap().expect("it was there throughout");
    assert!(seen == value::<16>(1) || seen == value::<16>(2), "half of another value: {seen:?}");
}

/// A longer value gets a new position; a reader finds the key at all times.
#[test]
fn loom_an_item_that_moves_is_never_missed() {
    model(PREEMPTIONS, || {
        let cache = small::<Concurrent>(Eviction::ApproximateLru);
        cache.set(b"12345678", &[1; 3]).unwrap();
        let reader = {
            let cache = cache.clone();
            spawn(move || cache.get(b"12345678"))
        };
        cache.set(b"12345678", &value::<16>(2)).unwrap();
        let seen = reader.join().unwrap().expect("it was there throughout");
        assert!(seen == [1; 3] || seen == value::<16>(2), "{seen:?}");
    });
}

/// A removed key's entry disappears with the version's change.
#[test]
fn loom_a_removal_is_seen_whole_or_not_at_all() {
    model(PREEMPTIONS, || {
        let cache = small::<Concurrent>(Eviction::Fifo);
        let options = SetOptions { time_to_live: Some(Duration::from_secs(1000)), flags: 0 };
        cache.set_with(b"12345678", &value::<16>(1), options).unwrap();
        let reader = {
            let cache = cache.clone();
            spawn(move || cache.get(b"12345678"))
        };
        assert!(cache.remove(b"12345678"));
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == value::<16>(1)));
        assert_eq!(cache.get(b"12345678"), None);
    });
}

/// A partition that is resized redirects readers to its new memory: they find the item, or miss it while it moves.
#[test]
fn loom_a_resize_beside_a_reader_never_lies() {
    model(PREEMPTIONS, || {
        let cache = small::<Concurrent>(Eviction::Fifo);
        cache.set(b"12345678", &value::<16>(1)).unwrap();
        let limit = cache.stats().total().memory_bytes as usize;
        let reader = {
            let cache = cache.clone();
            spawn(move || cache.get(b"12345678"))
        };
        cache.resize(limit + 256).unwrap();
        let seen = reader.join().unwrap();
        assert!(seen.is_none_or(|seen| seen == value::<16>(1)));
        assert_eq!(cache.get(b"12345678").as_deref(), Some(&value::<16>(1)[..]));
    });
}

/// A copy of older data is refused, or replaced, whenever the reader set it.
#[test]
fn loom_no_copy_of_older_data_outlives_its_era() {
    model(PREEMPTIONS, copy_of_older_data);
}

pub fn copy_of_older_data() {
    let cache = small::<Concurrent>(Eviction::Fifo);
    let data = Arc::new(AtomicU8::new(1));
    let reader = {
        let (cache, data) = (cache.clone(), data.clone());
        spawn(move || {
            let era = cache.era();
            let copy = value::<16>(data.load(Ordering::Relaxed));
            cache.set_in_era(era, b"12345678", &copy, SetOptions::default()).unwrap();
        })
    };
    data.store(2, Ordering::Release);
    cache.begin_era();
    // As if only what is there had to be replaced.
    if cache.contains(b"12345678") {
        cache.set(b"12345678", &value::<16>(2)).unwrap();
    }
    reader.join().unwrap();
    let seen = cache.get(b"12345678");
    assert!(seen.is_none_or(|seen| seen == value::<16>(2)), "a copy of older data");
}

/// A full index grows while a reader uses it; the reader finds its item at all times.
#[test]
fn loom_an_item_in_an_index_that_grows_is_never_missed() {
    model(PREEMPTIONS, index_that_grows);
}

pub fn index_that_grows() {
    let cache = || {
        let builder = Cache::builder().payload_bytes_mean(24).eviction(Eviction::ApproximateLru);
        builder.hasher(KeyHasher::Xxh3 { seed: 1 }).room_for(16).build().unwrap()
    };
    let set = |cache: &Cache, number: u64| {
        let index_bytes = cache.stats().total().index_bytes_now;
        cache.set(&number.to_le_bytes(), &value::<16>(number as u8)).unwrap();
        cache.stats().total().index_bytes_now > index_bytes
    };
    let rehearsal = cache();
    let last = (0..16).find(|&number| set(&rehearsal, number)).expect("the index grows");
    let cache = Arc::new(cache());
    (0..last).for_each(|number| assert!(!set(&cache, number)));
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(&1_u64.to_le_bytes()))
    };
    assert!(set(&cache, last), "it grows with the same item again");
    assert_eq!(reader.join().unwrap().as_deref(), Some(&value::<16>(1)[..]), "it was there throughout");
}
