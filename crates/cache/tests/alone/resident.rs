//! Resident memory follows what is stored, however generous the limit.

use std::ops::Range;

use alluvium_cache::{Cache, Store};

use super::{alone, resident_bytes};

/// Additional memory of the test itself and the program, and the small parts of a cache that are resident from the
/// start.
const SLACK_BYTES: u64 = 8 << 20;

/// Bytes that items with these numbers, of 4+8 bytes, take in addition to earlier ones.
fn taken(cache: &Cache, items: Range<u32>) -> u64 {
    let before = resident_bytes();
    for number in items.clone() {
        cache.set(&number.to_le_bytes(), b"12345678").unwrap();
    }
    // If most of the index's room is used, some buckets are full by chance.
    assert!(cache.len() >= items.end as usize * 99 / 100);
    resident_bytes().saturating_sub(before)
}

#[test]
fn few_items_under_a_generous_limit_take_little() {
    let _alone = alone();
    for gibibytes in [1_usize, 4, 16, 256] {
        for (builder, name) in [
            (Cache::builder(), "logs"),
            (Cache::builder().payload_bytes_mean(12), "cells"),
            (Cache::builder().payload_bytes_fixed(80), "large cells"),
            (Cache::builder().payload_bytes_mean(4000), "few large ones"),
        ] {
            for partitions in [1, 8] {
                let cache =
                    builder.clone().memory_limit(gibibytes << 30).partitions(partitions).build().unwrap();
                let few = taken(&cache, 0..1000);
                assert!(few <= SLACK_BYTES, "{name}, {partitions} of {gibibytes} GiB: {few} bytes for 1,000");
                // Includes an index that has just grown, and cells for large items that contain small ones.
                let many = taken(&cache, 1000..200_000);
                let each = if name == "large cells" { 700 } else { 250 };
                assert!(
                    many <= 200_000 * each + SLACK_BYTES,
                    "{name}, {partitions} of {gibibytes} GiB: {many} bytes for 200,000"
                );
            }
        }
    }
    for gibibytes in [1_usize, 16] {
        let before = resident_bytes();
        let store = Store::builder().memory_limit(gibibytes << 30).payload_bytes_mean(12).build().unwrap();
        for number in 0..200_000_u32 {
            store.set(&number.to_le_bytes(), b"12345678").unwrap();
            if number == 1000 {
                let few = resident_bytes().saturating_sub(before);
                assert!(few <= SLACK_BYTES, "{gibibytes} GiB: {few} bytes for 1,000 items");
            }
        }
        let many = resident_bytes().saturating_sub(before);
        assert!(many <= 200_000 * 250 + SLACK_BYTES, "{gibibytes} GiB: {many} bytes for 200,000 items");
    }
}
