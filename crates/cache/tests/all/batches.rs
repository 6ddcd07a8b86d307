//! Batches determine ways of buckets before their earlier items change them.

use std::time::Duration;

use alluvium_cache::{Cache, Eviction, SetOptions, Store};

const KEY: &[u8; 8] = b"the key.";

/// Earlier items of a batch evict the item of a later one, whose dead copy is where an empty entry seems to refer to:
/// the batch must not overwrite it as if it were an item.
#[test]
fn a_batch_may_evict_what_it_sets_later() {
    const PAYLOAD: usize = 400;
    for attempt in 0..200_u64 {
        let cache = Cache::builder().memory_limit(160 << 10).payload_bytes_mean(PAYLOAD).build().unwrap();
        let number = |number: u64| (attempt << 32 | number).to_le_bytes();
        cache.set(KEY, &[1; PAYLOAD]).unwrap();
        for other in 0..1000 {
            cache.set(&number(other), &[0; PAYLOAD]).unwrap();
        }
        cache.remove(KEY);
        cache.set(KEY, &[2; PAYLOAD]).unwrap();
        cache.set(&number(1 << 30), &[0; PAYLOAD]).unwrap();
        let mut items: Vec<([u8; 8], [u8; PAYLOAD])> =
            (0..31).map(|other| (number(1 << 20 | other), [0; PAYLOAD])).collect();
        items.push((*KEY, [3; PAYLOAD]));
        cache.set_many(&items).unwrap();
        assert_eq!(cache.get(KEY).as_deref(), Some(&[3; PAYLOAD][..]), "attempt {attempt}");
    }
}

/// A callback removes an item that the batch gets later.
#[test]
fn a_batch_finds_what_is_there_when_its_turn_comes() {
    for eviction in [Eviction::S3Fifo, Eviction::ApproximateLru, Eviction::Fifo, Eviction::Lru] {
        let cache = Cache::builder().memory_limit(1 << 20).eviction(eviction).build().unwrap();
        // The first item of the log, which is dead now.
        cache.set(KEY, b"first").unwrap();
        cache.set(KEY, &[2; 300]).unwrap();
        cache.set(b"another.", b"value").unwrap();
        for again in [None, Some(&b"third"[..])] {
            let mut found = Vec::new();
            cache.get_many_with(&[b"another.", KEY], |at, item| {
                if at == 0 {
                    cache.remove(KEY);
                    again.into_iter().for_each(|value| cache.set(KEY, value).unwrap());
                }
                found.push(item.map(|item| item.value.to_vec()));
            });
            assert_eq!(found, [Some(b"value".to_vec()), again.map(<[u8]>::to_vec)], "{eviction:?}");
        }
    }
}

/// These lengths differ from those of items with an expiry only by bits above any key's length.
#[test]
fn keys_that_are_too_long_are_not_there() {
    let cache = Cache::builder().memory_limit(1 << 20).payload_bytes_mean(16).build().unwrap();
    let ends = SetOptions { time_to_live: Some(Duration::from_secs(1000)), flags: 0 };
    for number in 0..20_000_u64 {
        cache.set_with(&number.to_le_bytes(), &[7; 8], ends).unwrap();
    }
    let mut key = vec![0; (1 << 17) + 8];
    for number in 0..if cfg!(debug_assertions) { 500 } else { 10_000_u64 } {
        key[..8].copy_from_slice(&number.to_le_bytes());
        assert_eq!(cache.get(&key), None);
        assert!(cache.set(&key, b"value").is_err());
    }
}

/// Words of values that look like the headers of items that extend beyond the space.
#[test]
fn a_place_may_be_any_number() {
    const KEY_LEN: usize = 200;
    let store =
        Store::builder().memory_limit(256 << 10).payload_bytes_mean(300).keep_places().build().unwrap();
    let value = (KEY_LEN << 24).to_le_bytes().repeat(40);
    let mut number = 0_u64;
    for len in [320, 160, 80, 40, 24, 16, 8] {
        while store.set(&number.to_le_bytes(), &value[..len]).is_ok() {
            number += 1;
        }
    }
    let mut found = Vec::new();
    for place in (0..store.stats().space_bytes / 8 + 100).chain([u64::MAX, u64::from(u32::MAX)]) {
        assert!(!store.get_at_into(place, &[1; KEY_LEN], &mut found), "{place}");
    }
}
