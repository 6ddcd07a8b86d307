//! Partitions that others can tell by a public hash.

use std::collections::BTreeSet;

use alluvium_base::checksum::checksum64;
use alluvium_cache::{Cache, Compressed};

const PARTS: usize = 6;
const SEED: u64 = 9;
const ITEMS: u64 = if cfg!(miri) { 50 } else { 10_000 };

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// The partition as the documentation says.
fn part_of(key: &[u8]) -> usize {
    ((u128::from(checksum64(key, SEED)) * PARTS as u128) >> 64) as usize
}

#[test]
fn others_can_tell_the_partition_of_a_key() {
    for compressed in [None, Some(Compressed::default())] {
        let mut builder = Cache::builder().memory_limit(24 << 20).partitions(PARTS).partitions_by(SEED);
        if let Some(compressed) = compressed {
            builder = builder.compressed(compressed);
        }
        let cache = builder.build().unwrap();
        (0..ITEMS).for_each(|number| cache.set(&key(number), &[7; 300]).unwrap());
        // Items move to other memory, by their hashes.
        cache.resize(20 << 20).unwrap();
        let mut found = 0;
        for number in 0..ITEMS {
            let key = key(number);
            assert_eq!(cache.partition_of(&key), part_of(&key));
            if let Some(value) = cache.get(&key) {
                assert_eq!(value, [7; 300], "{number}");
                assert!(cache.remove(&key) && cache.get(&key).is_none());
                cache.set(&key, b"another").unwrap();
                found += 1;
            }
        }
        // A compressed zone hides an item in some thousands.
        assert!(found >= ITEMS - ITEMS / 1000, "{found}");
        let seen: BTreeSet<Vec<u8>> = cache.iter().map(|item| item.key).collect();
        assert!(seen.len() as u64 >= ITEMS - ITEMS / 500, "{}", seen.len());
    }
}
