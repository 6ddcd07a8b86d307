//! Items that move to the compressed zone, or are replaced, under a reader: it finds them at all times, and never an
//! older value.

use alluvium_base::KeyHasher;
use alluvium_cache::{Access, Cache, Codec, Compressed, Concurrent, ConcurrentReads, Eviction, Writer};
use loom::sync::Arc;

use super::{model, spawn, value};

/// A preemption more takes minutes: an item that moves is copied word by word.
const PREEMPTIONS: usize = 2;

/// Counters, and room for some items in the logs and in blocks.
const MEMORY_BYTES: usize = 14 << 10;

type Shared = Arc<Cache<ConcurrentReads>>;

fn compressed<A: Access>() -> Arc<Cache<A>> {
    let cache = Cache::builder()
        .payload_bytes_mean(24)
        .eviction(Eviction::ApproximateLru)
        .hasher(KeyHasher::Xxh3 { seed: 1 })
        .memory_limit(MEMORY_BYTES)
        .compressed(Compressed { codec: Codec::None, ..Compressed::default() })
        .build_as()
        .unwrap();
    Arc::new(cache)
}

/// A cache whose logs have evicted item 0, and its writer. Returns the number of the next key.
fn with_one_in_zone() -> (Shared, Writer, u64) {
    let cache: Shared = compressed();
    let mut writer = cache.writer(..).unwrap();
    let mut next = 0;
    while cache.stats().total().zone.demoted == 0 {
        set(&mut writer, next, next as u8);
        next += 1;
        assert!(next < 200, "the logs are small");
    }
    (cache, writer, next)
}

fn set(writer: &mut Writer, number: u64, stamp: u8) {
    writer.set(&number.to_le_bytes(), &value::<16>(stamp)).unwrap();
}

/// Reads a key in another thread while `write` is in progress; returns what the reader found.
fn read_beside(cache: &Shared, number: u64, write: impl FnOnce()) -> Option<Vec<u8>> {
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(&number.to_le_bytes()))
    };
    write();
    reader.join().unwrap()
}

/// A set evicts the next item into a block, perhaps that of the item that is read.
fn block_written_anew() {
    let (cache, mut writer, next) = with_one_in_zone();
    let seen = read_beside(&cache, 0, || set(&mut writer, next, 0xee));
    assert_eq!(seen.as_deref(), Some(&value::<16>(0)[..]), "it was there throughout");
}

/// A set evicts the item that is read.
pub fn item_moved_to_zone() {
    let (cache, mut writer, next) = with_one_in_zone();
    let seen = read_beside(&cache, 1, || set(&mut writer, next, 0xee));
    assert_eq!(seen.as_deref(), Some(&value::<16>(1)[..]), "it was there throughout");
}

/// A set replaces an item of the zone, which is then hidden there.
fn item_replaced() {
    let (cache, mut writer, _) = with_one_in_zone();
    let seen = read_beside(&cache, 0, || set(&mut writer, 0, 0xee));
    let found = seen.as_deref();
    assert!(found == Some(&value::<16>(0)[..]) || found == Some(&value::<16>(0xee)[..]), "{found:?}");
    assert_eq!(cache.get(&0_u64.to_le_bytes()).as_deref(), Some(&value::<16>(0xee)[..]));
}

/// A cache that any thread writes, in whose zone item 0 is: the next get promotes it.
fn with_one_used_in_zone() -> Arc<Cache<Concurrent>> {
    let cache: Arc<Cache<Concurrent>> = compressed();
    let mut next = 0_u64;
    while cache.stats().total().zone.demoted == 0 {
        cache.set(&next.to_le_bytes(), &value::<16>(next as u8)).unwrap();
        next += 1;
        assert!(next < 200, "the logs are small");
    }
    assert!(cache.get(&0_u64.to_le_bytes()).is_some(), "it is in the zone");
    cache
}

/// Promotes item 0 in another thread while `write` is in progress.
fn promote_beside(cache: &Arc<Cache<Concurrent>>, write: impl FnOnce()) {
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(&0_u64.to_le_bytes()))
    };
    write();
    let found = reader.join().unwrap();
    let found = found.as_deref();
    let is_either = found.is_none_or(|found| found == value::<16>(0) || found == value::<16>(0xee));
    assert!(is_either, "half of another: {found:?}");
}

/// An item is removed from the zone while a get promotes it.
pub fn item_removed_beside_promotion() {
    let cache = with_one_used_in_zone();
    let key = 0_u64.to_le_bytes();
    promote_beside(&cache, || assert!(cache.remove(&key), "it was there throughout"));
    assert_eq!(cache.get(&key), None, "a promotion brought it back");
}

/// An item of the zone is replaced while a get promotes it.
pub fn item_replaced_beside_promotion() {
    let cache = with_one_used_in_zone();
    let key = 0_u64.to_le_bytes();
    promote_beside(&cache, || cache.set(&key, &value::<16>(0xee)).unwrap());
    assert_eq!(cache.get(&key).as_deref(), Some(&value::<16>(0xee)[..]), "a promotion brought it back");
    // What was behind the newer item would be uncovered.
    assert!(cache.remove(&key));
    assert_eq!(cache.get(&key), None, "a promotion brought it back");
}

#[test]
fn loom_a_promotion_brings_no_removed_item_back() {
    model(PREEMPTIONS, item_removed_beside_promotion);
}

#[test]
fn loom_a_promotion_does_not_cover_a_newer_item() {
    model(PREEMPTIONS, item_replaced_beside_promotion);
}

#[test]
fn loom_a_block_that_is_written_anew_is_whole() {
    model(PREEMPTIONS, block_written_anew);
}

#[test]
fn loom_an_item_that_moves_to_the_zone_is_never_missed() {
    model(PREEMPTIONS, item_moved_to_zone);
}

#[test]
fn loom_an_item_that_is_replaced_is_never_older() {
    model(PREEMPTIONS, item_replaced);
}
