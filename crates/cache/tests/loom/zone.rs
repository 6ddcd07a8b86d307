//! Items that move to the compressed zone, or are replaced, under a reader: it finds them at all times, and never an
//! older value.

use alluvium_base::KeyHasher;
use alluvium_cache::{Cache, Codec, Compressed, ConcurrentReads, Eviction, Writer};
use loom::sync::Arc;

use super::{model, spawn, value};

/// A preemption more takes minutes: an item that moves is copied word by word.
const PREEMPTIONS: usize = 2;

/// Counters, and room for some items in the logs and in blocks.
const MEMORY_BYTES: usize = 14 << 10;

type Shared = Arc<Cache<ConcurrentReads>>;

/// A cache whose logs have evicted item 0, and its writer. Returns the number of the next key.
fn with_one_in_zone() -> (Shared, Writer, u64) {
    let cache: Shared = Arc::new(
        Cache::builder()
            .payload_bytes_mean(24)
            .eviction(Eviction::ApproximateLru)
            .hasher(KeyHasher::Xxh3 { seed: 1 })
            .memory_limit(MEMORY_BYTES)
            .compressed(Compressed { codec: Codec::None, ..Compressed::default() })
            .build_as()
            .unwrap(),
    );
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
