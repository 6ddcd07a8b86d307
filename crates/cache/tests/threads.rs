//! Threads that read and write the same few keys: every value found is one that its key had.
#![cfg(not(loom))]

use std::sync::atomic::{AtomicBool, Ordering};

use alluvium_cache::{Access, Cache, Concurrent, ConcurrentReads, Eviction};

/// Miri runs some hundred times slower.
const ROUNDS: u64 = if cfg!(miri) { 30 } else { 30_000 };
const KEYS: u64 = 300;

/// A value that names its key and is of one piece, of a length that its stamp determines.
fn value(number: u64, stamp: u64) -> Vec<u8> {
    let mut value = vec![stamp as u8; 16 + (stamp % 90) as usize];
    value[..8].copy_from_slice(&number.to_le_bytes());
    value
}

fn is_value(value: &[u8], number: u64) -> bool {
    let stamp = value[8];
    value[..8] == number.to_le_bytes() && value[8..].iter().all(|&byte| byte == stamp)
}

fn readers_beside_writers<A: Access>(eviction: Eviction, writers: u64)
where
    Cache<A>: Sync,
{
    let cache = Cache::builder()
        .memory_limit(96 << 10)
        .payload_bytes_mean(60)
        .eviction(eviction)
        .build_as::<A>()
        .unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (cache, is_done) = (&cache, &is_done);
        let writing: Vec<_> = (0..writers)
            .map(|writer| {
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        let stamp = round * writers + writer;
                        let number = stamp * 7919 % KEYS;
                        cache.set(&number.to_le_bytes(), &value(number, stamp)).unwrap();
                        if round % 50 == 0 {
                            cache.remove(&(number / 2).to_le_bytes());
                        }
                        if round % 5000 == 4999 {
                            cache.resize(if round % 10_000 == 9999 { 96 << 10 } else { 140 << 10 }).unwrap();
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
                    number = (number * 31 + 17) % KEYS;
                    if cache.get_into(&number.to_le_bytes(), &mut found) {
                        assert!(is_value(&found, number), "{number}: {found:?}");
                    }
                    let keys: Vec<[u8; 8]> = (0..40).map(|at| ((number + at) % KEYS).to_le_bytes()).collect();
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
    cache.hand_over();
    cache.sweep();
    assert_eq!(cache.iter().count(), cache.len());
}

#[test]
fn values_are_of_one_piece_beside_one_writer() {
    for eviction in [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru] {
        readers_beside_writers::<ConcurrentReads>(eviction, 1);
    }
}

#[test]
fn values_are_of_one_piece_beside_several_writers() {
    for eviction in [Eviction::S3Fifo, Eviction::Lru] {
        readers_beside_writers::<Concurrent>(eviction, 2);
    }
}
