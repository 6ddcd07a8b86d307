//! The static filter compared with the set of its keys.

use std::collections::BTreeSet;

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::static_filter::{StaticFilter, WIDTH_MAX};
use proptest::prelude::*;

fn hash(number: u64) -> KeyHash {
    KeyHash::from_halves(checksum64(&number.to_le_bytes(), 1), checksum64(&number.to_le_bytes(), 2))
}

proptest! {
    #[test]
    fn every_key_is_there(
        keys in prop::collection::vec(prop_oneof![4 => any::<u128>(), 1 => 0u128..50], 0..700),
        width in 1..=WIDTH_MAX,
    ) {
        let hashes: Vec<KeyHash> = keys.iter().copied().map(KeyHash).collect();
        let filter = StaticFilter::new(&hashes, width);
        prop_assert_eq!((filter.len(), filter.width()), (hashes.len() as u64, width));
        prop_assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
        if hashes.is_empty() {
            prop_assert!(!filter.may_contain(hash(1)));
        }
        let again = StaticFilter::from_bytes(&filter.to_bytes()).unwrap();
        prop_assert_eq!(again, filter);
    }
}

#[test]
fn absent_keys_pass_by_chance_only_and_the_space_is_near_the_bound() {
    for (keys, width) in [(1000, 8), (32 << 10, 4), (32 << 10, 12), (200_000, 7)] {
        let hashes: Vec<KeyHash> = (0..keys).map(hash).collect();
        let filter = StaticFilter::new(&hashes, width);
        let present: BTreeSet<KeyHash> = hashes.iter().copied().collect();
        assert!(present.iter().all(|&hash| filter.may_contain(hash)));
        let strangers = 1_u64 << 19;
        let passed = (0..strangers).filter(|number| filter.may_contain(hash(!number))).count();
        let expected = f64::from(strangers as u32) / f64::from(1u32 << width);
        let passed = passed as f64;
        assert!((passed - expected).abs() < 5.0 * expected.sqrt(), "{width} bits: {passed}, not {expected}");
        let bits_per_key = filter.memory_bytes() as f64 * 8.0 / keys as f64;
        assert!(bits_per_key <= 1.13 * f64::from(width), "{keys} keys of {width} bits: {bits_per_key}");
    }
}

#[test]
fn answers_are_frozen_because_filters_are_on_disk() {
    let hashes: Vec<KeyHash> = (0..100).map(hash).collect();
    let bytes = StaticFilter::new(&hashes, 5).to_bytes();
    assert_eq!(checksum64(&bytes, 0), 17_027_925_865_798_264_808);
}

#[test]
fn changed_bytes_are_refused() {
    let hashes: Vec<KeyHash> = (0..300).map(hash).collect();
    let bytes = StaticFilter::new(&hashes, 6).to_bytes();
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        assert!(StaticFilter::from_bytes(&changed).is_err(), "byte {place}");
        assert!(StaticFilter::from_bytes(&bytes[..place]).is_err(), "{place} bytes");
    }
}
