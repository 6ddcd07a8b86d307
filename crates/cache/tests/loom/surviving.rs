//! Readers beside the writer of a bucket of descriptors, in a cache that survives.

use alluvium_cache::Model;
use loom::sync::Arc;

use super::{PREEMPTIONS, model, spawn, value};

const KEY: &[u8] = b"12345678";

/// Reads the key in a thread of its own, while `write` runs.
fn beside(cache: Model, write: impl FnOnce(&Model)) -> Option<Vec<u8>> {
    let cache = Arc::new(cache);
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(KEY))
    };
    write(&cache);
    reader.join().unwrap()
}

/// An item of the same size is written over the former one.
#[test]
fn loom_a_surviving_item_that_is_overwritten_is_seen_whole() {
    model(PREEMPTIONS, overwritten_item);
}

pub fn overwritten_item() {
    let cache = Model::new(false);
    cache.set(KEY, &value::<16>(1));
    let seen = beside(cache, |cache| cache.set(KEY, &value::<16>(2))).expect("it was there throughout");
    assert!(seen == value::<16>(1) || seen == value::<16>(2), "half of another value: {seen:?}");
}

/// An item of another size has another place: a new descriptor, of two words.
#[test]
fn loom_a_descriptor_is_seen_whole() {
    model(PREEMPTIONS, replaced_descriptor);
}

pub fn replaced_descriptor() {
    let cache = Model::new(false);
    cache.set(KEY, &value::<16>(1));
    let seen = beside(cache, |cache| cache.set(KEY, &[])).expect("it was there throughout");
    assert!(seen == value::<16>(1) || seen.is_empty(), "half of another value: {seen:?}");
}

/// The zone of an item gets a new version and other items.
#[test]
fn loom_a_zone_that_is_written_again_is_not_read() {
    model(PREEMPTIONS, renewed_zone);
}

pub fn renewed_zone() {
    let cache = Model::new(false);
    cache.set(KEY, &value::<16>(1));
    let seen = beside(cache, |cache| {
        cache.clear();
        // At the same place.
        cache.set(b"abcdefgh", &value::<16>(2));
    });
    assert!(seen.is_none_or(|seen| seen == value::<16>(1)), "half of another value");
}

/// A key becomes hot: its item comes to the write cache.
#[test]
fn loom_an_item_that_comes_to_the_write_cache_is_never_missed() {
    model(PREEMPTIONS, || {
        let cache = Model::new(true);
        cache.set(KEY, &value::<16>(1));
        cache.set(KEY, &value::<16>(2));
        let seen = beside(cache, |cache| cache.set(KEY, &value::<16>(3))).expect("it was there throughout");
        assert!(seen == value::<16>(2) || seen == value::<16>(3), "half of another value: {seen:?}");
    });
}

/// A hot item goes to the file.
#[test]
fn loom_an_item_that_leaves_the_write_cache_is_never_missed() {
    model(PREEMPTIONS, cooled_item);
}

pub fn cooled_item() {
    let cache = Model::new(true);
    (0..3).for_each(|_| cache.set(KEY, &value::<16>(1)));
    let seen = beside(cache, Model::cool_all).expect("it was there throughout");
    assert_eq!(seen, value::<16>(1), "half of another value");
}
