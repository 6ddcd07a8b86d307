//! Threads that read and write the same few keys: every value found is one that was set for its key.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use alluvium_cache::{
    Access, Builder, Cache, Codec, Compressed, Concurrent, ConcurrentReads, Eviction, Store, Writer,
};

/// Miri runs some hundred times slower.
const ROUNDS: u64 = if cfg!(miri) { 30 } else { 30_000 };
const KEYS: u64 = 300;

/// What the threads of a test do.
#[derive(Clone, Copy)]
struct Story {
    keys: u64,
    /// Half of the bytes of the longest value.
    mean: u64,
    /// The memory limits between which writers change.
    limits: [usize; 2],
}

impl Story {
    fn of(mean: u64) -> Self {
        Self { keys: KEYS, mean, limits: [96 << 10, 140 << 10] }
    }
}

/// A value that names its key and reveals tearing, with a length that its stamp determines.
fn value(number: u64, stamp: u64, mean: u64) -> Vec<u8> {
    let mut value = vec![stamp as u8; 3 + (stamp % (2 * mean)) as usize];
    value[..2].copy_from_slice(&(number as u16).to_le_bytes());
    value
}

fn is_value(value: &[u8], number: u64) -> bool {
    let stamp = value[2];
    value[..2] == (number as u16).to_le_bytes() && value[2..].iter().all(|&byte| byte == stamp)
}

/// A handle with which a thread writes.
trait Writes: Send {
    fn set(&mut self, key: &[u8], value: &[u8]);
    fn remove(&mut self, key: &[u8]);
    fn resize(&mut self, memory_limit: usize);
}

impl Writes for &Cache<Concurrent> {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        Cache::set(self, key, value).unwrap();
    }

    fn remove(&mut self, key: &[u8]) {
        Cache::remove(self, key);
    }

    fn resize(&mut self, memory_limit: usize) {
        Cache::resize(self, memory_limit).unwrap();
    }
}

impl Writes for Writer {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        Self::set(self, key, value).unwrap();
    }

    fn remove(&mut self, key: &[u8]) {
        Self::remove(self, key).unwrap();
    }

    fn resize(&mut self, memory_limit: usize) {
        Self::resize(self, memory_limit).unwrap();
    }
}

/// Readers beside the one writer of a cache.
fn readers_beside_the_writer(builder: Builder, story: Story) {
    let cache = builder.memory_limit(story.limits[0]).build_concurrent_reads().unwrap();
    readers_beside(&cache, vec![cache.writer(..).unwrap()], story);
    cache.writer(..).unwrap().sweep();
    assert_eq!(cache.iter().count(), cache.len());
}

/// Readers beside two threads that write the same keys.
fn readers_beside_two_writers(builder: Builder, story: Story) {
    let cache = builder.memory_limit(story.limits[0]).build().unwrap();
    readers_beside(&cache, vec![&cache, &cache], story);
    cache.sweep();
    assert_eq!(cache.iter().count(), cache.len());
}

fn readers_beside<A: Access>(cache: &Cache<A>, writers: Vec<impl Writes>, story: Story)
where
    Cache<A>: Sync,
{
    let Story { keys: key_count, mean, limits } = story;
    let is_done = AtomicBool::new(false);
    let count = writers.len() as u64;
    std::thread::scope(|scope| {
        let is_done = &is_done;
        let writing: Vec<_> = (0..)
            .zip(writers)
            .map(|(number, mut writer)| {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let stamp = round * count + number;
                        let number = stamp * 7919 % key_count;
                        writer.set(&number.to_le_bytes(), &value(number, stamp, mean));
                        if round % 50 == 0 {
                            writer.remove(&(number / 2).to_le_bytes());
                        }
                        if round % 5000 == 4999 {
                            writer.resize(limits[(round / 5000 + 1) as usize % 2]);
                        }
                    }
                })
            })
            .collect();
        for reader in 0..2_u64 {
            scope.spawn(move || {
                let mut number = reader;
                let mut found = Vec::new();
                while !is_done.load(Ordering::Relaxed) {
                    number = (number * 31 + 17) % key_count;
                    if cache.get_into(&number.to_le_bytes(), &mut found) {
                        assert!(is_value(&found, number), "{number}: {found:?}");
                    }
                    let keys: Vec<[u8; 8]> =
                        (0..40).map(|at| ((number + at) % key_count).to_le_bytes()).collect();
                    cache.get_many_with(&keys, |at, item| {
                        let number = u64::from_le_bytes(keys[at]);
                        assert!(item.is_none_or(|item| is_value(item.value, number)));
                    });
                    for item in cache.iter().take(20) {
                        let number = u64::from_le_bytes(item.key.try_into().unwrap());
                        assert!(is_value(&item.value, number), "{number}: {:?}", item.value);
                    }
                }
            });
        }
        let outcomes: Vec<_> = writing.into_iter().map(|thread| thread.join()).collect();
        is_done.store(true, Ordering::Relaxed);
        assert!(outcomes.into_iter().all(|outcome| outcome.is_ok()));
    });
}

#[test]
fn values_are_of_one_piece_beside_one_writer() {
    for eviction in [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru] {
        readers_beside_the_writer(
            Cache::builder().payload_bytes_mean(8 + 45).eviction(eviction),
            Story::of(45),
        );
    }
}

#[test]
fn values_are_of_one_piece_beside_several_writers() {
    for eviction in [Eviction::S3Fifo, Eviction::Lru] {
        readers_beside_two_writers(
            Cache::builder().payload_bytes_mean(8 + 45).eviction(eviction),
            Story::of(45),
        );
    }
}

/// Half of the values fit in cells with their keys, so items move between their buckets and the logs.
#[test]
fn tiny_values_are_of_one_piece_beside_writers() {
    let builder = Cache::builder().payload_bytes_mean(8 + 6);
    readers_beside_the_writer(builder.clone(), Story::of(6));
    readers_beside_two_writers(builder, Story::of(6));
}

/// The same with larger cells, into which three quarters of the values fit.
#[test]
fn values_in_cells_are_of_one_piece_beside_writers() {
    let builder = Cache::builder().payload_bytes_fixed(8 + 70);
    readers_beside_the_writer(builder.clone(), Story::of(45));
    readers_beside_two_writers(builder, Story::of(45));
}

/// Most values are in compressed blocks, and move to the logs and back.
#[test]
fn compressed_values_are_of_one_piece_beside_writers() {
    let codecs = [
        (Codec::Lz4, 0),
        (Codec::None, 0),
        #[cfg(feature = "zstd")]
        (Codec::Zstd, 300 << 10),
    ];
    for (codec, more) in codecs {
        let builder =
            Cache::builder().payload_bytes_mean(8 + 70).compressed(Compressed { codec, hot_percent: 90 });
        // Values of one byte repeated are a hundredth of their size in blocks.
        let keys = if codec == Codec::None { 5000 } else { 20_000 };
        let story = Story { keys, mean: 70, limits: [530 << 10, 620 << 10].map(|limit| limit + more) };
        readers_beside_the_writer(builder.clone(), story);
        readers_beside_two_writers(builder, story);
    }
}

/// Two threads write at the same time: each has the writer of one of two partitions, and tries every key.
#[test]
fn writers_of_two_partitions_write_side_by_side() {
    let cache = Cache::builder().memory_limit(1 << 20).partitions(2).build_concurrent_reads().unwrap();
    let store = Store::builder().memory_limit(1 << 20).partitions(2).build_as::<ConcurrentReads>().unwrap();
    std::thread::scope(|scope| {
        for partition in 0..2 {
            let mut writer = cache.writer(partition..=partition).unwrap();
            let mut storing = store.writer(partition..=partition).unwrap();
            scope.spawn(move || {
                for stamp in 0..ROUNDS {
                    let number = stamp * 7919 % KEYS;
                    let key = number.to_le_bytes();
                    let of_cache = writer.set(&key, &value(number, stamp, 45));
                    assert_eq!(of_cache.is_ok(), writer.partition_of(&key) == partition);
                    let found = writer.get(&key);
                    assert!(found.is_none_or(|found| is_value(&found, number)));
                    let of_store = storing.set(&key, &value(number, stamp, 45));
                    assert_eq!(of_store.is_ok(), storing.partition_of(&key) == partition);
                    let found = storing.get(&key);
                    assert!(found.is_none_or(|found| is_value(&found, number)));
                }
            });
        }
    });
    assert_eq!(store.stats().items, KEYS.min(ROUNDS));
}

/// A log of a few hundred items wraps around all the time, and readers ask for items that are about to be evicted: each
/// is found whole or not at all.
fn readers_at_the_head_of_the_log(eviction: Eviction) {
    let cache = Cache::builder()
        .memory_limit(40 << 10)
        .payload_bytes_mean(60)
        .eviction(eviction)
        .build_concurrent_reads()
        .unwrap();
    let mut writer = cache.writer(..).unwrap();
    // Number of sets so far; each is of a new key.
    let written = AtomicU64::new(0);
    let rounds = ROUNDS * 10;
    std::thread::scope(|scope| {
        let (cache, written) = (&cache, &written);
        scope.spawn(move || {
            for number in 0..rounds {
                writer.set(&number.to_le_bytes(), &value(number, number, 45)).unwrap();
                written.store(number + 1, Ordering::Relaxed);
            }
        });
        for reader in 0..2_u64 {
            scope.spawn(move || {
                let (mut found, mut age, mut hits) = (Vec::new(), 1, 0_u64);
                loop {
                    let next = written.load(Ordering::Relaxed);
                    let number = next.saturating_sub(age);
                    if cache.get_into(&number.to_le_bytes(), &mut found) {
                        assert!(is_value(&found, number), "{number}: {found:?}");
                        hits += 1;
                        age += 1 + reader;
                    } else {
                        // Too old; the head is a little nearer.
                        age = (age - age / 8).max(1);
                    }
                    if next == rounds {
                        break;
                    }
                }
                assert!(hits > 0 || cfg!(miri));
            });
        }
    });
    let total = cache.stats().total();
    assert!(total.log_bytes_used * 20 < rounds * 60 || cfg!(miri), "the log came round many times");
}

#[test]
fn values_are_of_one_piece_where_the_log_comes_round() {
    for eviction in [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru] {
        readers_at_the_head_of_the_log(eviction);
    }
}

/// A store is repeatedly filled with items of changing sizes and half emptied, so that items move to join free space,
/// while readers ask for items that are never removed: each is found at all times, whole.
#[test]
fn a_store_moves_items_unseen() {
    const KEPT: u64 = 500;
    let store =
        Store::builder().memory_limit(1 << 20).payload_bytes_mean(40).build_as::<ConcurrentReads>().unwrap();
    let mut writing = store.writer(..).unwrap();
    let kept = |number: u64| value(number, number % 90, 45);
    let rounds = if cfg!(miri) { 3 } else { 60 };
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (store, is_done) = (&store, &is_done);
        let writer = scope.spawn(move || {
            let mut others = Vec::new();
            let mut next = KEPT;
            for round in 0..rounds {
                // Items that stay are spread among those that are removed.
                let len = [16, 700, 60, 5000, 30, 20_000][round % 6];
                while writing.set(&next.to_le_bytes(), &vec![7; len]).is_ok() {
                    others.push(next);
                    if round == 0 && next < 2 * KEPT {
                        let number = next - KEPT;
                        writing.set(&number.to_le_bytes(), &kept(number)).unwrap();
                    }
                    next += 1;
                }
                let mut count = 0;
                others.retain(|number| {
                    count += 1;
                    (count + round) % 2 == 0 || writing.remove(&number.to_le_bytes()) == Ok(false)
                });
            }
        });
        for reader in 0..2_u64 {
            scope.spawn(move || {
                let (mut found, mut was_there) = (Vec::new(), vec![false; KEPT as usize]);
                let mut number = reader;
                while !is_done.load(Ordering::Relaxed) {
                    number = (number + 7) % KEPT;
                    let is_there = store.get_into(&number.to_le_bytes(), &mut found);
                    assert!(is_there || !was_there[number as usize], "{number} was lost");
                    assert!(!is_there || found == kept(number), "{number}: {found:?}");
                    was_there[number as usize] |= is_there;
                    if number == 0 {
                        let mut visited = vec![0; KEPT as usize];
                        store.for_each(|key, value| {
                            let number = u64::from_le_bytes(key.try_into().unwrap());
                            if let Some(times) = visited.get_mut(number as usize) {
                                *times += 1;
                                assert_eq!(value, kept(number));
                            }
                        });
                        let once = visited
                            .iter()
                            .zip(&was_there)
                            .all(|(&times, &there)| times == 1 || !there && times == 0);
                        assert!(once, "{visited:?}");
                    }
                }
            });
        }
        let outcome = writer.join();
        is_done.store(true, Ordering::Relaxed);
        outcome.unwrap();
    });
    assert!(store.stats().moved > 100 || cfg!(miri), "{:?}", store.stats());
    assert!((0..KEPT).all(|number| store.get(&number.to_le_bytes()) == Some(kept(number))));
}
