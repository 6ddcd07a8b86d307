//! Scans and loads return every item once, in order.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{
    OwnedItem, SLOT_PAGES, SPEC, colliding_key, fixed_items, items_of_any_size, sorted, table,
    write_hash_section, write_sorted_section,
};
use crate::{READ_AHEAD_BYTES, SectionRange, SectionScanner, SortedIndex};

/// All items from the position of `scanner`, which is before an item.
fn rest(scanner: &mut SectionScanner) -> Vec<(KeyHash, OwnedItem)> {
    let mut items = Vec::new();
    while let Some((hash, item)) = scanner.next().unwrap() {
        let item = OwnedItem {
            kind: item.kind,
            flags: item.flags,
            expires_at_ms: item.expires_at_ms,
            key: item.key.to_vec(),
            value: item.value.to_vec(),
        };
        items.push((hash, item));
    }
    assert!(scanner.current().is_none() && !scanner.advance().unwrap(), "the end stays the end");
    items
}

fn with_hashes(items: Vec<OwnedItem>) -> Vec<(KeyHash, OwnedItem)> {
    items.into_iter().map(|item| (item.hash(), item)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_scan_gives_what_was_written(
        items in items_of_any_size(150),
        collisions in 0u32..7,
        read_pages in 1usize..5,
        sought: u64,
    ) {
        let mut items = items;
        items.extend((0..collisions).map(|number| OwnedItem::value(colliding_key(number), vec![0; 900])));
        let storage = MemoryStorage::default();
        let (table, _) = table(&storage, |writer| {
            write_hash_section(writer, SPEC, &items, 15);
            write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
            write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
            write_sorted_section(writer, SPEC, &items, SLOT_PAGES);
        });
        let expected = with_hashes(sorted(&items));
        let [hash_section, sorted_section, trie_section, pages_section] = table.sections() else {
            panic!("four sections")
        };

        let mut scanner = SectionScanner::with_read_bytes(Arc::clone(sorted_section), 0, read_pages * 4096);
        prop_assert_eq!(&rest(&mut scanner), &expected);
        let mut slots = rest(&mut SectionScanner::new(Arc::clone(hash_section)));
        slots.sort_by(|one, other| (one.0, &one.1.key).cmp(&(other.0, &other.1.key)));
        prop_assert_eq!(&slots, &expected);

        for sought in [KeyHash::from_halves(sought, 0), KeyHash(0), KeyHash(u128::MAX)]
            .into_iter()
            .chain(expected.iter().map(|(hash, _)| *hash).step_by(7))
        {
            let first = expected.iter().find(|(hash, _)| *hash >= sought);
            for section in [sorted_section, trie_section, pages_section] {
                let range = HashRange::new(sought.0, u128::MAX);
                let range = SectionRange { section: Arc::clone(section), range };
                let mut scanner = SectionScanner::chain_ranges(&storage, &[range], READ_AHEAD_BYTES).unwrap();
                prop_assert_eq!(
                    scanner.next().unwrap().map(|(hash, item)| (hash, item.key)),
                    first.map(|(hash, item)| (*hash, item.key.as_slice()))
                );
            }
        }
    }
}

proptest! {
    /// Parts of several sections, one after the other, with read-ahead: the content of each part, in order.
    #[test]
    fn parts_of_sections_are_scanned_one_after_the_other(
        sections in prop::collection::vec((items_of_any_size(60), any::<u64>(), any::<u64>(), any::<bool>()), 1..6),
    ) {
        let storage = MemoryStorage::default();
        let (table, _) = table(&storage, |writer| {
            for (items, _, _, trie) in &sections {
                let index = if *trie { SortedIndex::Trie } else { SortedIndex::FENCES };
                write_sorted_section(writer, SPEC, items, index);
            }
        });
        let mut ranges = Vec::new();
        let mut expected = Vec::new();
        for (section, (items, low, high, _)) in table.sections().iter().zip(&sections) {
            let (low, high) = (u128::from(*low.min(high)), u128::from(*low.max(high)));
            let range = HashRange::new(low << 64, high << 64 | u128::from(u64::MAX));
            ranges.push(SectionRange { section: Arc::clone(section), range });
            let wanted = |(hash, _): &(KeyHash, OwnedItem)| range.contains(hash.0);
            expected.extend(with_hashes(sorted(items)).into_iter().filter(wanted));
        }
        let mut scanner = SectionScanner::chain_ranges(&storage, &ranges, READ_AHEAD_BYTES).unwrap();
        prop_assert_eq!(&rest(&mut scanner), &expected);
        let mut scanner = SectionScanner::chain(&storage, table.sections().iter().cloned(), READ_AHEAD_BYTES);
        let mut count = 0;
        while let Some((_, item)) = scanner.next().unwrap() {
            let key = item.key.to_vec();
            let (items, ..) = &sections[scanner.section_number()];
            prop_assert!(items.iter().any(|known| known.key == key));
            count += 1;
        }
        prop_assert_eq!(count, sections.iter().map(|(items, ..)| sorted(items).len()).sum::<usize>());
    }
}

#[test]
fn a_scan_starts_at_any_page() {
    let storage = MemoryStorage::default();
    let items = sorted(&fixed_items(1_000));
    let (table, _) =
        table(&storage, |writer| write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES));
    let section = &table.sections()[0];
    let mut sizes = Vec::new();
    for page in 0..=section.page_count() + 1 {
        let found = rest(&mut SectionScanner::with_read_bytes(Arc::clone(section), page, READ_AHEAD_BYTES));
        assert!(with_hashes(items.clone()).ends_with(&found));
        sizes.push(found.len());
    }
    assert_eq!(sizes[0], items.len());
    assert!(sizes[..section.page_count() as usize + 1].is_sorted_by(|one, other| one > other));
    assert_eq!(sizes[section.page_count() as usize..], [0, 0]);
}
