//! Threads that promote items of the compressed zone while others set and remove the same few keys: no get finds a
//! value that is older than a write that had returned before the get began.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use alluvium_base::KeyHasher;
use alluvium_cache::{Cache, Codec, Compressed, Concurrent, Eviction, Update};
use alluvium_io::SimulatedClock;

/// Miri runs some hundred times slower.
const ROUNDS: u64 = if cfg!(miri) { 5 } else { 800 };
/// Keys that all threads use. Each belongs to one writer.
const KEYS: usize = 16;
const WRITERS: u64 = 2;
/// Items between two writes of such a key, which push it out of the logs.
const OTHERS: u64 = 12;
/// After this many writes what readers have noted is worked off.
const WRITES_PER_NOTES: usize = 1024;
/// How often a writer lets readers go ahead.
const YIELDS_MAX: usize = 30;
const OTHER_BYTES: usize = 2000;
const LIMIT_BYTES: usize = 560 << 10;

/// What the writer of a key has done: numbers of its writes. Those that are even remove the item.
#[derive(Default)]
struct Written {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A value that names the write.
fn value(write: u64) -> [u8; 24] {
    let mut value = [write as u8; 24];
    value[..8].copy_from_slice(&write.to_le_bytes());
    value
}

fn key(number: usize) -> [u8; 8] {
    (number as u64).to_le_bytes()
}

/// Sets and removes the writer's keys by turns, each when it is in the zone, among items that push them there.
fn write(cache: &Cache<Concurrent>, writer: u64, written: &[Written], laps: &AtomicU64) {
    let mut other = writer << 32;
    for round in 0..ROUNDS {
        for _ in 0..OTHERS {
            // Few of them, so that the zone keeps what is used.
            other += 1;
            let key = ((1 << 40) + (writer << 32) + other % 500).to_le_bytes();
            cache.set(&key, &[other as u8; OTHER_BYTES]).unwrap();
        }
        // Readers get the lock for a while: the second get of a key promotes it. They may also have failed.
        let lap = laps.load(Ordering::Relaxed);
        for _ in 0..YIELDS_MAX {
            if laps.load(Ordering::Relaxed) >= lap + 2 {
                break;
            }
            std::thread::yield_now();
        }
        let number = (round * WRITERS + writer) as usize % KEYS;
        let Written { begun, ended } = &written[number];
        let write = begun.load(Ordering::Relaxed) + 1;
        begun.store(write, Ordering::SeqCst);
        if write.is_multiple_of(2) {
            cache.remove(&key(number));
        } else {
            cache.set(&key(number), &value(write)).unwrap();
        }
        ended.store(write, Ordering::SeqCst);
    }
}

/// Gets the keys, so that they are promoted, and checks what it finds.
fn read(
    cache: &Cache<Concurrent>,
    reader: usize,
    written: &[Written],
    laps: &AtomicU64,
    is_done: &AtomicBool,
) {
    let mut number = reader;
    while !is_done.load(Ordering::Relaxed) {
        number = (number + 1) % KEYS;
        laps.fetch_add(u64::from(number == 0), Ordering::Relaxed);
        let ended = written[number].ended.load(Ordering::SeqCst);
        let Some(found) = cache.get(&key(number)) else { continue };
        let begun = written[number].begun.load(Ordering::SeqCst);
        let write = u64::from_le_bytes(*found.first_chunk().unwrap());
        assert_eq!(found, value(write), "{number}: of one piece");
        assert!((ended..=begun).contains(&write), "{number}: write {write} after {ended}, before {begun}");
    }
}

#[test]
fn a_promotion_never_covers_a_newer_write() {
    for codec in [Codec::Lz4, Codec::None] {
        let cache = Cache::builder()
            .memory_limit(LIMIT_BYTES)
            .payload_bytes_mean(OTHER_BYTES)
            .compressed(Compressed { codec, ..Compressed::default() })
            // Each item leaves the log soon, however often it is used.
            .eviction(Eviction::Fifo)
            // Time stands still, so each item that is used twice is worth a promotion.
            .clock(Arc::new(SimulatedClock::new(Duration::from_secs(1))))
            .build()
            .unwrap();
        let written: Vec<Written> = (0..KEYS).map(|_| Written::default()).collect();
        let (laps, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (cache, written, laps, is_done) = (&cache, &written, &laps, &is_done);
            let writers: Vec<_> =
                (0..WRITERS).map(|writer| scope.spawn(move || write(cache, writer, written, laps))).collect();
            let readers: Vec<_> = (0..2)
                .map(|reader| scope.spawn(move || read(cache, reader, written, laps, is_done)))
                .collect();
            let outcomes: Vec<_> = writers.into_iter().map(|thread| thread.join()).collect();
            is_done.store(true, Ordering::Relaxed);
            outcomes.into_iter().chain(readers.into_iter().map(|thread| thread.join())).for_each(|outcome| {
                outcome.unwrap();
            });
        });
        let zone = cache.stats().total().zone;
        assert!(zone.promoted > 0 || cfg!(miri), "{zone:?}");
    }
}

/// A get that promotes an item begins with what is due by then, perhaps the promotion of the same item, which a get
/// beside a write had noted.
#[test]
fn an_item_is_promoted_once() {
    for early in 0..40 {
        let cache = Cache::builder()
            .memory_limit(LIMIT_BYTES)
            .payload_bytes_mean(OTHER_BYTES)
            .compressed(Compressed::default())
            .eviction(Eviction::Fifo)
            .hasher(KeyHasher::Xxh3 { seed: 1 })
            .clock(Arc::new(SimulatedClock::new(Duration::from_secs(1))))
            .build()
            .unwrap();
        cache.set(&key(0), b"removed later").unwrap();
        let mut others = 1;
        while cache.stats().total().zone.demoted == 0 {
            cache.set(&key(others), &[7; OTHER_BYTES]).unwrap();
            others += 1;
        }
        assert!(cache.get(&key(0)).is_some(), "the first get in the zone");
        let mut is_there = false;
        cache
            .update(&key(others), |_| {
                is_there = cache.get(&key(0)).is_some();
                Update::Keep
            })
            .unwrap();
        assert!(is_there);
        // One of these numbers of writes makes the notes due with the next get.
        let writes = WRITES_PER_NOTES - others + 20 - early;
        for _ in 0..writes {
            cache.remove(&key(others));
        }
        assert!(cache.get(&key(0)).is_some());
        // Where its block has changed meanwhile, it stays there until the next get.
        assert!(cache.stats().total().zone.promoted <= 1, "{writes} writes");
        assert!(cache.remove(&key(0)));
        assert_eq!(cache.get(&key(0)), None, "{writes} writes");
    }
}
