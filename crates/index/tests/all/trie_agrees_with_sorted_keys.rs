//! Entropy-coded tries compared with the sorted keys themselves.

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::trie::{Granularity, Trie, TrieBuilder, TrieConfig};
use proptest::prelude::*;

/// Sorted hashes: uniform, clustered, tied in the high half and tied in all bits.
fn hashes() -> impl Strategy<Value = Vec<KeyHash>> {
    let clustered = (0u64..4, 0u64..300, 0u64..3)
        .prop_map(|(cluster, offset, low)| KeyHash::from_halves((cluster << 62) + offset, low));
    let tied = (0u64..3, any::<u64>()).prop_map(|(high, low)| KeyHash::from_halves(high << 63, low));
    let uniform = any::<u128>().prop_map(KeyHash);
    prop_oneof![
        prop::collection::vec(uniform.clone(), 0..700),
        prop::collection::vec(prop_oneof![6 => uniform, 3 => clustered, 1 => tied], 0..300),
        prop::collection::vec(any::<u8>().prop_map(|byte| KeyHash(u128::from(byte) << 70)), 0..300),
    ]
    .prop_map(|mut hashes| {
        hashes.sort_unstable();
        hashes
    })
}

fn configs() -> impl Strategy<Value = TrieConfig> {
    let granularity = prop_oneof![
        2 => Just(Granularity::Key),
        1 => (1u32..50).prop_map(|keys_per_page| Granularity::RegularPage { keys_per_page }),
        1 => Just(Granularity::ListedPage),
    ];
    let bucket = prop_oneof![1u32..20, Just(256), Just(4096)];
    (granularity, bucket, prop_oneof![2 => Just(0u32), 1 => 1u32..=64]).prop_map(
        |(granularity, bucket_keys_mean, fragment_bits)| TrieConfig {
            granularity,
            bucket_keys_mean,
            fragment_bits,
            ..TrieConfig::default()
        },
    )
}

/// The pages of a table: for each, how many keys start in it.
fn build(hashes: &[KeyHash], expected: u64, config: TrieConfig, pages: &[usize]) -> Trie {
    let mut builder = TrieBuilder::new(expected, config);
    let mut rest = hashes;
    for &page in pages.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (keys, after) = rest.split_at(page.min(rest.len()));
        keys.iter().for_each(|hash| builder.push(*hash));
        builder.end_page();
        rest = after;
    }
    assert_eq!(builder.len(), hashes.len() as u64);
    builder.finish()
}

fn check(trie: &Trie, hashes: &[KeyHash], pages: &[usize]) {
    assert_eq!(trie.len(), hashes.len() as u64);
    let mut page_of = Vec::new();
    for (page, &keys) in pages.iter().cycle().enumerate() {
        if page_of.len() >= hashes.len() {
            break;
        }
        page_of.extend(std::iter::repeat_n(page as u64, keys));
    }
    for &hash in hashes {
        let rank = hashes.partition_point(|other| *other < hash) as u64;
        let expected = match trie.granularity() {
            Granularity::Key => rank,
            Granularity::RegularPage { keys_per_page } => rank / u64::from(keys_per_page),
            Granularity::ListedPage => page_of[rank as usize],
        };
        assert_eq!(trie.lookup(hash), Some(expected), "{hash:?} with rank {rank} of {}", hashes.len());
        let (first, after) = trie.ranks_at(expected).unwrap();
        assert!((first..after).contains(&rank));
    }
    assert_eq!(trie.ranks_at(trie.positions()), None);
}

fn check_absent(trie: &Trie, probes: &[u128]) {
    for &probe in probes {
        if let Some(position) = trie.lookup(KeyHash(probe)) {
            assert!(position < trie.positions());
        }
    }
}

/// Page sizes in keys; some pages have none, at least one has some.
fn page_sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![3 => 1usize..40, 1 => Just(0)], 1..12).prop_map(|mut sizes| {
        sizes.push(7);
        sizes
    })
}

proptest! {
    #[test]
    fn every_key_is_found_at_its_place(
        hashes in hashes(), config in configs(), pages in page_sizes(), expected in 0u64..1000, probes: [u128; 8],
    ) {
        let trie = build(&hashes, expected, config, &pages);
        check(&trie, &hashes, &pages);
        check_absent(&trie, &probes);
        let again = Trie::from_bytes(&trie.to_bytes()).unwrap();
        check(&again, &hashes, &pages);
        prop_assert_eq!(again, trie);
    }

    #[test]
    fn a_table_may_cover_part_of_the_hashes(
        offsets in prop::collection::vec(any::<(u64, u64)>(), 1..300), ends: (u64, u64), shift in 0u32..64,
        config in configs(), pages in page_sizes(), probes: [u128; 8],
    ) {
        let low = ends.0.min(ends.1);
        let high = low + ((ends.0.max(ends.1) - low) >> shift);
        let span = u128::from(high - low) + 1;
        let place = |(high, rest): (u64, u64)| KeyHash::from_halves(low + (u128::from(high) % span) as u64, rest);
        let mut hashes: Vec<KeyHash> = offsets.into_iter().map(place).collect();
        hashes.sort_unstable();
        let config = TrieConfig { range_low: low, range_high: high, ..config };
        let trie = build(&hashes, hashes.len() as u64, config, &pages);
        check(&trie, &hashes, &pages);
        check_absent(&trie, &probes);
    }

    #[test]
    fn damaged_bytes_are_refused(
        hashes in hashes(), config in configs(), pages in page_sizes(), place: prop::sample::Index, flip in 1u8..,
    ) {
        let mut bytes = build(&hashes, hashes.len() as u64, config, &pages).to_bytes();
        let place = place.index(bytes.len());
        bytes[place] ^= flip;
        prop_assert!(Trie::from_bytes(&bytes).is_err());
        prop_assert!(Trie::from_bytes(&bytes[..place]).is_err());
    }

    #[test]
    fn damage_under_a_right_checksum_never_panics(
        hashes in hashes(), config in configs(), pages in page_sizes(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..8), probes: [u128; 8],
    ) {
        let mut bytes = build(&hashes, hashes.len() as u64, config, &pages).to_bytes();
        for (place, flip) in damage {
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
        }
        let body = bytes.len() - 8;
        let kind = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let checksum = checksum64(&bytes[..body], kind);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        if let Ok(trie) = Trie::from_bytes(&bytes) {
            check_absent(&trie, &probes);
            for hash in &hashes {
                check_absent(&trie, &[hash.0]);
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        prop_assert!(Trie::from_bytes(&bytes).is_err());
    }

    #[test]
    fn fragments_tell_most_absent_keys(hashes in prop::collection::vec(any::<u128>(), 200..400), absent: [u128; 64]) {
        let mut hashes: Vec<KeyHash> = hashes.into_iter().map(KeyHash).collect();
        hashes.sort_unstable();
        for granularity in [Granularity::Key, Granularity::RegularPage { keys_per_page: 8 }] {
            let config = TrieConfig { fragment_bits: 16, ..TrieConfig::new(granularity) };
            let trie = build(&hashes, 300, config, &[8]);
            check(&trie, &hashes, &[8]);
            let taken = absent.iter().filter(|probe| trie.lookup(KeyHash(**probe)).is_some()).count();
            prop_assert!(taken < 4, "{taken} of 64 absent keys taken for present");
        }
    }
}

#[test]
fn every_small_number_of_keys() {
    for count in 0..300u64 {
        let mut hashes: Vec<KeyHash> = (0..count)
            .map(|index| KeyHash::from_halves(index.wrapping_mul(0x9e37_79b9_7f4a_7c15), index))
            .collect();
        hashes.sort_unstable();
        for granularity in
            [Granularity::Key, Granularity::RegularPage { keys_per_page: 32 }, Granularity::ListedPage]
        {
            check(&build(&hashes, count, TrieConfig::new(granularity), &[5, 40]), &hashes, &[5, 40]);
        }
    }
}

#[test]
fn keys_of_one_hash_keep_ranks_of_their_own() {
    let before = KeyHash::from_halves(3, 0);
    let tie = KeyHash::from_halves(4, 9);
    for count in [2, 3, 63, 64, 65, 200, 1000] {
        let mut hashes = vec![before];
        hashes.extend(std::iter::repeat_n(tie, count));
        hashes.push(KeyHash::from_halves(4, 10));
        hashes.push(KeyHash::from_halves(u64::MAX, 0));
        for granularity in
            [Granularity::Key, Granularity::RegularPage { keys_per_page: 10 }, Granularity::ListedPage]
        {
            check(&build(&hashes, 1, TrieConfig::new(granularity), &[11]), &hashes, &[11]);
        }
    }
}

#[test]
fn keys_that_crowd_into_one_bucket_are_found() {
    let hashes: Vec<KeyHash> =
        (0..50_000u64).map(|index| KeyHash::from_halves(index * index, index)).collect();
    for granularity in [Granularity::Key, Granularity::RegularPage { keys_per_page: 32 }] {
        let trie = build(&hashes, 50_000, TrieConfig::new(granularity), &[32]);
        for rank in (0..hashes.len()).step_by(997) {
            let divisor = if granularity == Granularity::Key { 1 } else { 32 };
            assert_eq!(trie.lookup(hashes[rank]), Some(rank as u64 / divisor));
        }
    }
}

#[test]
fn tries_of_uniform_keys_take_the_promised_space() {
    let mut hashes: Vec<KeyHash> = (0..200_000u64)
        .map(|index| KeyHash::from_halves(checksum64(&index.to_le_bytes(), 1), index))
        .collect();
    hashes.sort_unstable();
    for (granularity, bits_max) in [
        (Granularity::Key, 2.55),
        (Granularity::RegularPage { keys_per_page: 32 }, 0.65),
        (Granularity::ListedPage, 0.87),
    ] {
        let trie = build(&hashes, 200_000, TrieConfig::new(granularity), &[20, 32, 44]);
        assert!(trie.len() / trie.buckets() >= 240);
        let bits = trie.memory_bytes() as f64 * 8.0 / trie.len() as f64;
        assert!(bits <= bits_max, "{granularity:?}: {bits} bit/key");
    }
}

#[test]
#[should_panic(expected = "descend")]
fn unsorted_hashes_are_a_callers_mistake() {
    let mut builder = TrieBuilder::new(2, TrieConfig::default());
    builder.push(KeyHash(1));
    builder.push(KeyHash(0));
}
