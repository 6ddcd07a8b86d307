//! Elias-Fano lists compared with a sorted vector, and with the `vers-vecs` crate.

use alluvium_base::checksum::checksum64;
use alluvium_index::elias_fano::{EliasFano, EliasFanoBuilder};
use proptest::prelude::*;
use vers_vecs::EliasFanoVec;

/// Sorted numbers: even, clustered, with duplicates and with huge gaps.
fn numbers() -> impl Strategy<Value = Vec<u64>> {
    let number = prop_oneof![
        4 => 0u64..1000,
        3 => (0u64..8, 0u64..40).prop_map(|(cluster, offset)| (cluster << 40) + offset),
        2 => any::<u64>(),
        1 => Just(u64::MAX),
    ];
    prop_oneof![
        prop::collection::vec(number, 0..300),
        prop::collection::vec(any::<u64>(), 0..300),
        (prop::collection::vec(0u64..100, 0..300), 0u32..57)
            .prop_map(|(values, shift)| values.into_iter().map(|value| value << shift).collect()),
    ]
    .prop_map(|mut values| {
        values.sort_unstable();
        values
    })
}

fn check(list: &EliasFano, values: &[u64]) {
    assert_eq!(list.len(), values.len() as u64);
    assert_eq!(list.is_empty(), values.is_empty());
    assert!(list.iter().eq(values.iter().copied()));
    for (index, &value) in values.iter().enumerate() {
        assert_eq!(list.get(index as u64), Some(value));
        let pair = values.get(index + 1).map(|next| (value, *next));
        assert_eq!(list.get_pair(index as u64), pair);
        for probe in [value.saturating_sub(1), value, value.saturating_add(1)] {
            check_search(list, values, probe);
        }
    }
    for probe in [0, 1, 1 << 20, 1 << 40, u64::MAX] {
        check_search(list, values, probe);
    }
    assert_eq!(list.get(values.len() as u64), None);
    assert_eq!(list.get(u64::MAX), None);
    assert_eq!(list.get_pair(u64::MAX), None);
}

fn check_search(list: &EliasFano, values: &[u64], probe: u64) {
    let below = values.partition_point(|value| *value < probe) as u64;
    let at_most = values.partition_point(|value| *value <= probe) as u64;
    assert_eq!(list.counts(probe), (below, at_most), "of {probe}");
    assert_eq!(list.last_at_most(probe), at_most.checked_sub(1));
}

proptest! {
    #[test]
    fn access_and_search_agree_with_a_sorted_vector(values in numbers(), from in 0u64..310) {
        let list = EliasFano::new(&values);
        check(&list, &values);
        prop_assert!(list.iter_from(from).eq(values.iter().copied().skip(from as usize)));
        let mut builder = EliasFanoBuilder::new();
        values.iter().for_each(|value| builder.push(*value));
        prop_assert_eq!(builder.finish(), list);
    }

    #[test]
    fn stored_lists_come_back(values in numbers()) {
        let list = EliasFano::new(&values);
        let again = EliasFano::from_bytes(&list.to_bytes()).unwrap();
        check(&again, &values);
        prop_assert_eq!(again, list);
    }

    #[test]
    fn damaged_bytes_are_refused(values in numbers(), place: prop::sample::Index, flip in 1u8..) {
        let mut bytes = EliasFano::new(&values).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        prop_assert!(EliasFano::from_bytes(&bytes).is_err());
        prop_assert!(EliasFano::from_bytes(&bytes[..place]).is_err());
    }

    #[test]
    fn damage_under_a_right_checksum_never_panics(
        values in numbers(), place: prop::sample::Index, flip in 1u8.., probes: [u64; 4],
    ) {
        let mut bytes = EliasFano::new(&values).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        let body = bytes.len() - 8;
        let checksum = checksum64(&bytes[..body], u64::from_le_bytes(bytes[..8].try_into().unwrap()));
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(list) = EliasFano::from_bytes(&bytes) {
            let values: Vec<u64> = list.iter().collect();
            prop_assert!(values.is_sorted());
            check(&list, &values);
            probes.iter().for_each(|probe| check_search(&list, &values, *probe));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        prop_assert!(EliasFano::from_bytes(&bytes).is_err());
    }
}

#[test]
fn answers_agree_with_vers() {
    let mut value = 0;
    let values: Vec<u64> = (0..10_000u64)
        .map(|index| {
            value += index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55;
            value
        })
        .collect();
    let theirs = EliasFanoVec::from_slice(&values);
    let ours = EliasFano::new(&values);
    for index in 0..values.len() {
        assert_eq!(ours.get(index as u64), theirs.get(index));
    }
    for probe in (0..value + 100).step_by(7) {
        let expected = theirs.predecessor(probe);
        assert_eq!(ours.last_at_most(probe).and_then(|index| ours.get(index)), expected);
    }
}

#[test]
fn every_small_length_of_even_numbers() {
    for count in 0..300u64 {
        let values: Vec<u64> = (0..count).map(|index| index * 37).collect();
        check(&EliasFano::new(&values), &values);
    }
}
