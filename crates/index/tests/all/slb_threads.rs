//! Many threads using one lookaside buffer: a thread that has seen a change end sees nothing older.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, RwLock};
use std::thread;

use alluvium_index::slb::{Buffer, Config, Lookup, Reader, Reference};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const KEYS: u64 = 48;
const SLOTS: usize = 64;
const CHANGES: u64 = 100_000;
/// Minimum number of lookups of each reader, however soon the writers end.
const LOOKUPS_MIN: usize = 20_000;
/// Maximum number of keys of a call for many: more than are prefetched at once.
const EACH_MAX: usize = 40;

/// Items in slots of two words that are changed one after the other, in place, so that a reader beside the change may
/// read half of each. The words of removed items stay until the slot is reused.
#[derive(Debug)]
struct Slots {
    words: Vec<[AtomicU64; 2]>,
    places: RwLock<HashMap<u64, u32>>,
    free: Mutex<Vec<u32>>,
}

/// A word that encodes key and version.
fn word(key: u64, version: u64) -> u64 {
    version << 16 | key
}

impl Slots {
    fn new() -> Self {
        Self {
            words: (0..SLOTS).map(|_| [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)]).collect(),
            places: RwLock::default(),
            free: Mutex::new((0..SLOTS as u32).collect()),
        }
    }

    fn store(&self, slot: u32, key: u64, version: u64) {
        for half in &self.words[slot as usize] {
            half.store(word(key, version), Ordering::Relaxed);
        }
    }

    /// Makes the next version: alternately in place, in another slot, or absent.
    fn advance(&self, key: u64, version: u64, in_place: bool) -> Option<Reference> {
        let mut places = self.places.write().unwrap();
        if is_absent(version) {
            let slot = places.remove(&key).unwrap();
            self.free.lock().unwrap().push(slot);
            return None;
        }
        let slot = match places.get(&key) {
            Some(&slot) if in_place => slot,
            old => {
                let mut free = self.free.lock().unwrap();
                // The slot that was freed last: a stale reference would find it.
                let slot = free.pop().unwrap();
                free.extend(old);
                slot
            }
        };
        self.store(slot, key, version);
        places.insert(key, slot);
        Some(slot.into())
    }
}

fn is_absent(version: u64) -> bool {
    version.is_multiple_of(4)
}

impl Lookup for Slots {
    type Key = u64;
    type Item<'a> = [u64; 2];

    fn hash(&self, key: &u64) -> u64 {
        key.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn search(&self, key: &u64) -> Option<(Reference, [u64; 2])> {
        let places = self.places.read().unwrap();
        let slot = *places.get(key)?;
        Some((slot.into(), self.words[slot as usize].each_ref().map(|half| half.load(Ordering::Relaxed))))
    }

    fn resolve(&self, key: &u64, reference: Reference) -> Option<[u64; 2]> {
        let halves = &self.words[reference.number() as usize];
        let item = [halves[0].load(Ordering::Relaxed), halves[1].load(Ordering::Relaxed)];
        (item[0] & 0xffff == *key).then_some(item)
    }
}

#[derive(Debug, Default)]
struct Progress {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Progress {
    /// Panics unless the item is that of a single version since `oldest`.
    fn check(&self, key: u64, oldest: u64, item: Option<[u64; 2]>) {
        let newest = self.begun.load(Ordering::SeqCst);
        match item {
            Some([first, second]) => {
                assert_eq!(first, second, "half of one version, half of another");
                let version = first >> 16;
                assert_eq!(first, word(key, version));
                assert!((oldest..=newest).contains(&version), "{oldest} {version} {newest}");
            }
            None => assert!((oldest..=newest).any(is_absent), "missed: {oldest} {newest}"),
        }
    }
}

/// Two threads change keys of their own, two read any: with one key per call, and with many.
fn run(config: Config, seed: u64) -> u64 {
    let buffer = Buffer::new(Slots::new(), config);
    let progress: Vec<Progress> = (0..KEYS).map(|_| Progress::default()).collect();
    let is_over = AtomicBool::new(false);
    // All threads start together: a processor that is busy elsewhere may start a reader late.
    let start = Barrier::new(4);
    let (buffer, progress, is_over, start) = (&buffer, &progress, &is_over, &start);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|part| {
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed + part);
                    start.wait();
                    for _ in 0..CHANGES {
                        let key = random.random_range(0..KEYS / 2) * 2 + part;
                        let own = &progress[key as usize];
                        let version = own.begun.load(Ordering::Relaxed) + 1;
                        own.begun.store(version, Ordering::SeqCst);
                        let (in_place, is_told) = (random.random(), random.random_ratio(3, 4));
                        buffer.change(&key, |index| {
                            let reference = index.advance(key, version, in_place);
                            (reference.filter(|_| is_told), ())
                        });
                        own.ended.store(version, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let readers: Vec<_> = (0..2)
            .map(|number| {
                scope.spawn(move || {
                    let mut reader = Reader::with_seed(seed + number);
                    let mut random = SmallRng::seed_from_u64(seed + 100 + number);
                    let mut lookups = 0;
                    start.wait();
                    while lookups < LOOKUPS_MIN || !is_over.load(Ordering::Relaxed) {
                        let count = if number == 0 { 1 } else { random.random_range(1..=EACH_MAX) };
                        let keys: Vec<_> = (0..count).map(|_| random.random_range(0..KEYS)).collect();
                        lookups += keys.len();
                        let ended = |key: &u64| progress[*key as usize].ended.load(Ordering::SeqCst);
                        let mut oldest = keys.iter().map(ended).collect::<Vec<_>>().into_iter();
                        let mut check = |key: &u64, item: Option<[u64; 2]>| {
                            progress[*key as usize].check(*key, oldest.next().unwrap(), item);
                        };
                        match &*keys {
                            [key] => check(key, buffer.get(&mut reader, key)),
                            _ => buffer.get_each(&mut reader, &keys, check),
                        }
                        assert!(oldest.next().is_none(), "a key was passed over");
                    }
                    reader.stats().lookups - reader.stats().misses
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    })
}

#[test]
fn no_reader_sees_less_than_what_has_ended_or_half_of_anything() {
    let hits = run(Config { cache_bytes: 64 * 16, log_bytes: 1024 }, 1);
    assert!(hits > 0, "the table was not used");
}

#[test]
fn nor_while_items_are_thrown_out() {
    run(Config { cache_bytes: 64 * 3, log_bytes: 64 }, 2);
}
