//! The hash filter compared with the table from which it was made.

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::{HashFilter, TAG_BITS_MAX, TAG_BITS_MIN};
use proptest::prelude::*;

fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

fn hash(id: u64) -> KeyHash {
    KeyHash::from_halves(mix(id), mix(!id))
}

/// A table for `entries` entries, filled to `percent` of that, with the hashes by slot.
fn filled(entries: usize, percent: usize, seed: u64) -> (CuckooTable, Vec<(u32, KeyHash)>) {
    let table = CuckooTable::with_entries(entries);
    let hashes: Vec<KeyHash> =
        (0..(entries * percent / 100) as u64).map(|id| hash(seed ^ id << 20)).collect();
    for (id, &hash) in (0..).zip(&hashes) {
        if table.insert(hash, id).is_err() {
            break;
        }
    }
    let by_slot = table.entries().map(|(slot, _, id)| (slot, hashes[id as usize])).collect();
    (table, by_slot)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_slot_of_the_table_is_a_candidate_at_every_width_and_load(
        entries in 1usize..700,
        percent in 0usize..=110,
        seed: u64,
    ) {
        let (table, by_slot) = filled(entries, percent, seed);
        for tag_bits in TAG_BITS_MIN..=TAG_BITS_MAX {
            let filter = HashFilter::from_table(&table, tag_bits);
            prop_assert_eq!(filter.tag_bits(), tag_bits);
            prop_assert_eq!(filter.len(), table.len());
            prop_assert_eq!(filter.slots(), table.slots());
            prop_assert!(filter.occupied().eq(by_slot.iter().map(|&(slot, _)| slot)));
            for &(slot, hash) in &by_slot {
                prop_assert!(filter.candidates(hash).any(|candidate| candidate == slot));
                prop_assert!(filter.may_contain(hash));
            }
            let restored = HashFilter::from_bytes(&filter.to_bytes());
            prop_assert_eq!(restored.as_ref(), Ok(&filter));
        }
    }

    #[test]
    fn at_full_width_it_answers_as_the_table_does(entries in 1usize..300, seed: u64) {
        let (table, _) = filled(entries, 100, seed);
        let filter = HashFilter::from_table(&table, TAG_BITS_MAX);
        for id in 0..2000 {
            let hash = hash(id);
            let mut expected: Vec<u32> = table.candidates(hash).map(|(slot, _)| slot.index()).collect();
            expected.sort_unstable();
            let mut found: Vec<u32> = filter.candidates(hash).collect();
            found.sort_unstable();
            prop_assert_eq!(filter.may_contain(hash), !found.is_empty());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn damaged_bytes_are_refused(
        entries in 1usize..60,
        tag_bits in TAG_BITS_MIN..=TAG_BITS_MAX,
        position: prop::sample::Index,
        flip in 1u8..,
    ) {
        let (table, _) = filled(entries, 100, 3);
        let mut bytes = HashFilter::from_table(&table, tag_bits).to_bytes();
        let cut = position.index(bytes.len());
        prop_assert!(HashFilter::from_bytes(&bytes[..cut]).is_err());
        bytes[cut] ^= flip;
        prop_assert!(HashFilter::from_bytes(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        prop_assert!(HashFilter::from_bytes(&bytes).is_err());
    }
}

#[test]
fn resealed_nonsense_is_refused() {
    let (table, _) = filled(10, 100, 1);
    let sound = HashFilter::from_table(&table, 5).to_bytes();
    let forged = |position: usize, value: u8| {
        let mut bytes = sound.clone();
        bytes[position] = value;
        let body = bytes.len() - 8;
        let checksum = alluvium_base::checksum::checksum64(&bytes[..body], 0);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        HashFilter::from_bytes(&bytes)
    };
    assert!(forged(0, b'A').is_ok());
    let offset_of = |position, value| forged(position, value).unwrap_err().offset;
    assert_eq!(offset_of(7, b'x'), 0, "magic");
    assert_eq!(offset_of(12, 3), 12, "tag bits too few");
    assert_eq!(offset_of(15, 0xff), 12, "tag bits too many");
    assert_eq!(offset_of(20, 9), 20, "count");
    let last = sound.len() - 9;
    assert_eq!(offset_of(last, sound[last] | 0x10), last as u64, "filling bits");
}

#[test]
fn the_false_positive_rate_is_eight_occupied_slots_times_the_chance_of_a_tag() {
    let (table, _) = filled(50_000, 100, 7);
    for tag_bits in [4, 8, 12, 15] {
        let filter = HashFilter::from_table(&table, tag_bits);
        let asked = 2_000_000;
        let hits: usize = (0..asked).map(|id| filter.candidates(hash(id << 1 | 1 << 62)).count()).sum();
        let expected = asked as f64 * 8.0 * table.occupancy() / f64::from((1u32 << tag_bits) - 1);
        // Four standard deviations and the slight excess of tag 1, which also stands for 0.
        let excess = expected * 1.5 / f64::from(1u32 << tag_bits);
        assert!(
            (hits as f64 - expected - excess).abs() < 5.0 * expected.sqrt() + excess,
            "{tag_bits}: {hits} of {expected}"
        );
    }
}
