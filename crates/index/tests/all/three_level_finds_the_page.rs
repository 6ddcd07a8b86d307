//! The three-level index compared with the list of all items with their pages.

use std::collections::BTreeMap;

use alluvium_base::KeyHash;
use alluvium_base::checksum::checksum64;
use alluvium_index::three_level::{SuffixCode, ThreeLevelBuilder, ThreeLevelConfig, ThreeLevelIndex};
use proptest::prelude::*;

/// The items of a table in order, each with the page in which it starts.
type Items = Vec<(KeyHash, u64)>;

fn mix(number: u64) -> u64 {
    checksum64(&number.to_le_bytes(), 7)
}

/// Uniform halves, crowded ones, and the ends of the space.
fn halves() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => any::<u64>(),
        2 => (0u64..4, 0u64..20).prop_map(|(crowd, place)| mix(crowd) + place),
        1 => prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(1 << 63)],
    ]
}

/// Groups of various sizes in pages of various sizes, with some page numbers left out.
fn tables() -> impl Strategy<Value = Items> {
    let group = (halves(), prop::collection::vec(halves(), 1..60), 1usize..6);
    let pages = prop::collection::vec((1usize..30, prop_oneof![9 => Just(1u64), 1 => 2u64..5]), 1..20);
    (prop::collection::vec(group, 0..25), pages, any::<bool>()).prop_map(|(groups, pages, leaves_out)| {
        let hashes = groups.into_iter().flat_map(|(prefix, suffixes, copies)| {
            // Only a few groups have several items of one hash.
            let copies = if copies == 5 { 9 } else { 1 };
            let hash = move |suffix| std::iter::repeat_n(KeyHash::from_halves(prefix, suffix), copies);
            suffixes.into_iter().flat_map(hash)
        });
        let mut hashes: Vec<KeyHash> = hashes.collect();
        hashes.sort_unstable();
        in_pages(&hashes, pages.into_iter().map(|(items, step)| (items, if leaves_out { step } else { 1 })))
    })
}

/// Distributes `hashes` over pages, each with a number of items and a distance to the previous page.
fn in_pages(hashes: &[KeyHash], pages: impl Iterator<Item = (usize, u64)> + Clone) -> Items {
    let (mut items, mut page) = (Vec::new(), 0);
    let mut rest = hashes;
    for (count, step) in pages.cycle() {
        if rest.is_empty() {
            break;
        }
        let (these, after) = rest.split_at(count.min(rest.len()));
        items.extend(these.iter().map(|hash| (*hash, page)));
        page += step;
        rest = after;
    }
    items
}

fn build(items: &Items, config: ThreeLevelConfig) -> ThreeLevelIndex {
    let mut builder = ThreeLevelBuilder::new(config);
    items.iter().for_each(|(hash, page)| builder.push(*hash, *page));
    builder.finish()
}

fn check(index: &ThreeLevelIndex, items: &Items) {
    let mut by_hash: BTreeMap<KeyHash, (u64, u64)> = BTreeMap::new();
    let mut by_prefix: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for &(hash, page) in items {
        by_hash.entry(hash).or_insert((page, page)).1 = page;
        by_prefix.entry(hash.high()).or_insert((page, page)).1 = page;
    }
    let has_ties = by_hash.values().any(|(first, last)| first != last);
    for (&hash, &(first, last)) in &by_hash {
        let found = index.lookup(hash).unwrap();
        assert!(
            found.first <= first && last <= found.last,
            "{hash:?}: pages {first} to {last}, found {found:?}"
        );
        assert!(has_ties || found.first == found.last, "{hash:?}: found {found:?}");
    }
    for (&prefix, &(first, last)) in &by_prefix {
        let found = index.prefix_pages(prefix).unwrap();
        assert_eq!((found.first, found.last), (first, last), "prefix {prefix:#x}");
    }
    assert_eq!(index.prefixes(), by_prefix.len() as u64);
    assert_eq!(index.is_empty(), items.is_empty());
    let last_page = items.last().map(|(_, page)| *page);
    for number in 0..50 {
        let found = index.lookup(KeyHash::from_halves(mix(number), mix(!number)));
        assert!(found.map(|range| range.last) <= last_page && found.is_some() == last_page.is_some());
        let found = index.prefix_pages(mix(number));
        assert!(found.map(|range| range.last) <= last_page);
    }
}

proptest! {
    #[test]
    fn a_present_key_and_a_present_prefix_get_their_pages(
        items in tables(), items_expected in 0u64..2000, prefixes_expected in 0u64..100, mean in 1u32..100,
    ) {
        for suffix_code in [SuffixCode::Partial, SuffixCode::Trie] {
            let config = ThreeLevelConfig {
                suffix_code,
                bucket_prefixes_mean: mean,
                ..ThreeLevelConfig::new(items_expected, prefixes_expected)
            };
            let index = build(&items, config);
            check(&index, &items);
            prop_assert_eq!(index.suffix_code(), suffix_code);
            let again = ThreeLevelIndex::from_bytes(&index.to_bytes()).unwrap();
            check(&again, &items);
            prop_assert_eq!(again, index);
        }
    }
}

/// Uniform items in groups of `group_items`, `page_items` per page.
fn uniform(groups: u64, group_items: u64, page_items: usize) -> Items {
    let item = |number: u64| KeyHash::from_halves(mix(number / group_items), mix(!number));
    let mut hashes: Vec<KeyHash> = (0..groups * group_items).map(item).collect();
    hashes.sort_unstable();
    in_pages(&hashes, std::iter::once((page_items, 1)))
}

#[test]
fn groups_of_many_pages_are_found() {
    for (groups, group_items) in [(1, 40_000), (7, 3_000), (300, 60)] {
        let items = uniform(groups, group_items, 17);
        for suffix_code in [SuffixCode::Partial, SuffixCode::Trie] {
            let config =
                ThreeLevelConfig { suffix_code, ..ThreeLevelConfig::new(items.len() as u64, groups) };
            check(&build(&items, config), &items);
        }
    }
}

#[test]
fn a_key_in_every_prefix_group_takes_a_bit() {
    let items = uniform(100_000, 1, 17);
    let index = build(&items, ThreeLevelConfig::new(100_000, 100_000));
    check(&index, &items);
    assert!(index.memory_bytes() * 8 < 160_000, "{} bytes", index.memory_bytes());
}

#[test]
fn one_hash_in_many_pages_gives_all_of_them() {
    let hashes = vec![KeyHash::from_halves(5, 0); 100];
    let items = in_pages(&hashes, std::iter::once((7, 1)));
    for suffix_code in [SuffixCode::Partial, SuffixCode::Trie] {
        let index = build(&items, ThreeLevelConfig { suffix_code, ..ThreeLevelConfig::new(100, 1) });
        let found = index.lookup(hashes[0]).unwrap();
        assert_eq!((found.first, found.last), (0, 14));
    }
}

#[test]
fn changed_bytes_are_refused() {
    let index = build(&uniform(30, 40, 17), ThreeLevelConfig::new(1200, 30));
    let bytes = index.to_bytes();
    for place in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.clone();
        changed[place] ^= 0x40;
        assert!(ThreeLevelIndex::from_bytes(&changed).is_err(), "byte {place}");
        assert!(ThreeLevelIndex::from_bytes(&bytes[..place]).is_err(), "{place} bytes");
    }
}
