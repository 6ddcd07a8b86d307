//! The log wraps around under a reader: sets evict the oldest items and overwrite them.

use alluvium_cache::{Cache, ConcurrentReads, Eviction, Writer};
use loom::sync::Arc;

use super::{PREEMPTIONS, model, small, spawn, value};

type Shared = Arc<Cache<ConcurrentReads>>;

fn set<const BYTES: usize>(writer: &mut Writer, number: u64, stamp: u8) {
    writer.set(&number.to_le_bytes(), &value::<BYTES>(stamp)).unwrap();
}

/// Sets keys from 0 up to values of `BYTES` bytes until the log is full and the oldest item was evicted. Returns the
/// number of the next key.
fn fill<const BYTES: usize>(writer: &mut Writer) -> u64 {
    let used = |writer: &Writer| writer.stats().total().log_bytes_used;
    let mut number = 0;
    loop {
        let before = used(writer);
        set::<BYTES>(writer, number, number as u8);
        number += 1;
        if used(writer) <= before {
            return number;
        }
        assert!(number < 100, "the log is small");
    }
}

/// The item that was set first. A get of its key would count as an access.
fn oldest(writer: &Writer) -> u64 {
    let number = |key: Vec<u8>| u64::from_le_bytes(key.try_into().unwrap());
    writer.iter().map(|item| number(item.key)).min().expect("some item is there")
}

/// Reads a key in another thread while `write` is in progress; returns what the reader found.
fn read_beside(
    cache: &Shared,
    writer: &mut Writer,
    number: u64,
    write: impl FnOnce(&mut Writer),
) -> Option<Vec<u8>> {
    let reader = {
        let cache = cache.clone();
        spawn(move || cache.get(&number.to_le_bytes()))
    };
    write(writer);
    reader.join().unwrap()
}

/// A set evicts the oldest item and overwrites it while a reader reads it. The reader sees the whole item or nothing,
/// never bytes of the new one.
fn an_evicted_item_is_whole_or_absent(eviction: Eviction) {
    let cache: Shared = small(eviction);
    let mut writer = cache.writer(..).unwrap();
    let next = fill::<16>(&mut writer);
    let oldest = oldest(&writer);
    let seen = read_beside(&cache, &mut writer, oldest, |writer| set::<16>(writer, next, 0xee));
    assert!(seen.is_none_or(|seen| seen == value::<16>(oldest as u8)), "half of another item");
}

/// Under FIFO only the log's head shows that an entry dangles.
pub fn dangling_entry() {
    an_evicted_item_is_whole_or_absent(Eviction::Fifo);
}

/// If evictions remove entries, the version of the bucket shows it.
pub fn removed_entry() {
    an_evicted_item_is_whole_or_absent(Eviction::ApproximateLru);
}

/// The item being read crosses the ring's end: its first words are at the end of the ring and its last words are the
/// first words of the ring. The item that takes its place does so, too.
pub fn item_across_the_end() {
    const ITEM_WORDS: u64 = 5;
    const PAGE_WORDS: u64 = 8;
    let cache: Shared = small(Eviction::Fifo);
    let mut writer = cache.writer(..).unwrap();
    let mut next = fill::<24>(&mut writer);
    let capacity = (cache.stats().total().log_bytes_used / 8).next_multiple_of(PAGE_WORDS);
    let crosses = |number: &u64| number * ITEM_WORDS % capacity + ITEM_WORDS > capacity;
    let across = (0..100).find(crosses).expect("items are no divisor of the log");
    while oldest(&writer) != across {
        set::<24>(&mut writer, next, next as u8);
        next += 1;
    }
    let seen = read_beside(&cache, &mut writer, across, |writer| set::<24>(writer, next, 0xee));
    assert!(seen.is_none_or(|seen| seen == value::<24>(across as u8)), "half of another item");
}

/// The oldest item was used, so a set appends it again instead of dropping it, overwriting its own former position, and
/// drops the next one. A reader finds the used item at all times.
pub fn item_appended_again() {
    let cache: Shared = small(Eviction::ApproximateLru);
    let mut writer = cache.writer(..).unwrap();
    let next = fill::<24>(&mut writer);
    let oldest = oldest(&writer);
    assert_eq!(cache.get(&oldest.to_le_bytes()).as_deref(), Some(&value::<24>(oldest as u8)[..]));
    let seen = read_beside(&cache, &mut writer, oldest, |writer| set::<24>(writer, next, 0xee));
    assert_eq!(seen.as_deref(), Some(&value::<24>(oldest as u8)[..]), "it was there throughout");
}

/// While the main log has room, a set moves the oldest item on probation there and overwrites its former position. A
/// reader finds it at all times.
pub fn item_that_leaves_probation() {
    let cache: Shared = small(Eviction::S3Fifo);
    let mut writer = cache.writer(..).unwrap();
    let left_probation = || cache.stats().total().reinserted;
    let mut next = 0;
    while left_probation() == 0 {
        set::<16>(&mut writer, next, next as u8);
        next += 1;
    }
    let leaving = left_probation();
    let seen = read_beside(&cache, &mut writer, leaving, |writer| set::<16>(writer, next, 0xee));
    assert_eq!(left_probation(), leaving + 1);
    assert_eq!(seen.as_deref(), Some(&value::<16>(leaving as u8)[..]), "it was there throughout");
}

#[test]
fn loom_a_dangling_entry_is_noticed() {
    model(PREEMPTIONS, dangling_entry);
}

#[test]
fn loom_an_eviction_that_removes_the_entry_is_noticed() {
    model(PREEMPTIONS, removed_entry);
}

#[test]
fn loom_an_item_across_the_end_of_the_log_is_whole_or_absent() {
    model(PREEMPTIONS, item_across_the_end);
}

#[test]
fn loom_an_item_that_is_appended_again_is_never_missed() {
    model(PREEMPTIONS, item_appended_again);
}

#[test]
fn loom_an_item_that_leaves_probation_is_never_missed() {
    model(PREEMPTIONS, item_that_leaves_probation);
}
