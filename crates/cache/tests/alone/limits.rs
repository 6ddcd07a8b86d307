//! A single limit for the memory: resident bytes, including the index.

use std::fs;

use alluvium_cache::{Cache, Eviction};

use super::{alone, resident_bytes};

/// Additional memory of the test itself and the program, including page tables.
const SLACK_BYTES: u64 = 6 << 20;

/// Fills the cache several times over with items of `payload` bytes.
fn fill(cache: &Cache, payload: usize) {
    let value = vec![1; payload - 8];
    let items = 2 * cache.stats().total().memory_bytes as usize / payload;
    for number in 0..items as u64 {
        cache.set(&number.to_le_bytes(), &value).unwrap();
    }
}

#[test]
fn resident_memory_stays_under_the_limit_also_through_resizes() {
    const LIMIT: usize = 32 << 20;
    let _alone = alone();
    let builders = [
        (Cache::builder().payload_bytes_mean(100), 100),
        (Cache::builder().payload_bytes_fixed(100), 100),
        (Cache::builder().payload_bytes_mean(500).eviction(Eviction::Fifo), 500),
        (Cache::builder().payload_bytes_mean(200).eviction(Eviction::Lru), 200),
    ];
    for (builder, payload) in builders {
        let before = resident_bytes();
        let cache = builder.clone().memory_limit(LIMIT).partitions(2).build().unwrap();
        for limit in [LIMIT, LIMIT / 4, LIMIT, LIMIT / 2] {
            cache.resize(limit).unwrap();
            fill(&cache, payload);
            let taken = resident_bytes().saturating_sub(before);
            assert!(cache.stats().total().memory_bytes <= limit as u64);
            assert!(taken <= limit as u64 + SLACK_BYTES, "{builder:?}: {taken} bytes under {limit}");
            assert!(taken >= limit as u64 / 2, "{builder:?}: only {taken} of {limit} bytes are used");
        }
    }
}

/// The system allows a process some 65,000 mappings, and a resized cache keeps its old address ranges.
#[test]
fn resizes_leave_few_mappings() {
    let _alone = alone();
    let mappings = || fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    for payload_bytes in [16, 100] {
        let builder = Cache::builder().partitions(2).payload_bytes_mean(payload_bytes);
        let cache = builder.memory_limit(4 << 20).build().unwrap();
        for number in 0..4_000_u64 {
            cache.set(&number.to_le_bytes(), &[7; 80]).unwrap();
        }
        let before = mappings();
        for round in 0..500 {
            cache.resize(if round % 2 == 0 { 9 << 20 } else { 4 << 20 }).unwrap();
            cache.set(&u64::to_le_bytes(round), &[8; 80]).unwrap();
        }
        let after = mappings();
        assert!(after <= before + 60, "{before} {after}");
    }
}
