//! Sections of semi-sorted keyspaces: every key and every prefix is found, and damage is noticed.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHasher, KeyspaceId, PrefixFunction, PrefixRule, TableId};
use alluvium_io::{AlignedBuffer, Storage};
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{NAME, OwnedItem, SPEC};
use crate::scanner::READ_AHEAD_BYTES;
use crate::{
    Error, FilterKind, ListedName, NameScanner, PAGE_BYTES, PrefixCounts, SectionRange, SectionScanner,
    SectionSpec, SortedIndex, Table, TableWriter,
};

const SLASH: PrefixRule = PrefixRule::Delimiter { byte: b'/' };
const SEMI: KeyHasher = KeyHasher::SemiSorted { key0: 1, key1: 2, prefix: SLASH, lists_prefixes: false };
/// Hashes as [`SEMI`] does.
const LISTED: KeyHasher = KeyHasher::SemiSorted { key0: 1, key1: 2, prefix: SLASH, lists_prefixes: true };

/// Writes `items`, in any order, as a section of this keyspace, which lists prefixes.
pub(super) fn write_section(writer: &mut TableWriter, keyspace: KeyspaceId, items: &[OwnedItem]) {
    let mut items = items.to_vec();
    items.sort_by_key(|item| (SEMI.hash(&item.key), item.key.clone()));
    push_section(writer, SectionSpec { keyspace, hasher: LISTED, ..SPEC }, &items);
}

/// Writes a table of one section with a filter.
fn write(storage: &dyn Storage, hasher: KeyHasher, items: &mut [OwnedItem]) {
    items.sort_by_key(|item| (hasher.hash(&item.key), item.key.clone()));
    let mut writer = TableWriter::create(storage, NAME, TableId(7)).unwrap();
    push_section(&mut writer, SectionSpec { hasher, ..SPEC }, items);
    writer.finish().unwrap().sync().unwrap();
}

fn push_section(writer: &mut TableWriter, spec: SectionSpec, items: &[OwnedItem]) {
    let hasher = spec.hasher;
    writer.begin_sorted_section(spec, SortedIndex::ThreeLevel, items.len() as u64 / 30 + 1);
    let kinds = [FilterKind::Tags(12), FilterKind::Static(12)];
    writer.gather_filter(kinds[items.len() % 2], items.len() as u64);
    let mut encoding = Vec::new();
    for item in items.iter() {
        writer.push(hasher.hash(&item.key), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// The keys of a prefix, found by a scan of its range of hashes.
fn scanned(storage: &dyn Storage, table: &Table, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let range = HashRange::of_high_half(SEMI.prefix_hash(prefix).unwrap());
    let range = SectionRange { section: Arc::clone(&table.sections()[0]), range };
    let mut scanner = SectionScanner::chain_ranges(storage, &[range], READ_AHEAD_BYTES)?;
    let mut keys = Vec::new();
    while let Some((_, item)) = scanner.next()? {
        keys.push(item.key.to_vec());
    }
    Ok(keys)
}

/// The keys of a prefix, found among all items.
fn of_prefix(items: &[OwnedItem], prefix: &[u8]) -> Vec<Vec<u8>> {
    let keys = items.iter().map(|item| item.key.clone());
    keys.filter(|key| SEMI.prefix_of(key) == Some(prefix)).collect()
}

/// The names of prefixes from `start` on of which the table has items in these ranges.
fn listed(table: &Table, start: &[u8], ranges: Vec<HashRange>) -> Result<Vec<ListedName>, Error> {
    let mut scanner = NameScanner::from(Arc::clone(&table.sections()[0]), ranges, start, 2 * PAGE_BYTES)?;
    let mut names = Vec::new();
    while let Some(name) = scanner.next()? {
        names.push(name);
    }
    Ok(names)
}

/// A number of items of each prefix, with values of up to a number of bytes.
fn items_of(prefixes: &[(u32, usize)]) -> Vec<OwnedItem> {
    let items = prefixes.iter().zip(0..).flat_map(|(&(count, value_len), prefix)| {
        (0..count).map(move |suffix| {
            let value_len = value_len * (suffix as usize % 7) / 7;
            OwnedItem::value(format!("prefix {prefix}/{suffix}"), vec![suffix as u8; value_len])
        })
    });
    items.collect()
}

proptest! {
    #[test]
    fn keys_and_prefixes_are_found_however_skewed(
        prefixes in prop::collection::vec(
            (prop_oneof![4 => 0u32..8, 1 => 100u32..1500], 0usize..900), 1..40,
        ),
    ) {
        let storage = MemoryStorage::default();
        let mut items = items_of(&prefixes);
        write(&storage, SEMI, &mut items);
        let table = Table::open(&storage, NAME, &[]).unwrap();
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
        let section = &table.sections()[0];
        let mut buffer = AlignedBuffer::new();
        for item in &items {
            let found = section.get(SEMI.hash(&item.key), &item.key, &mut buffer).unwrap();
            prop_assert_eq!(found, Some(item.borrow()));
            let pages: u32 = section.locate(SEMI.hash(&item.key)).unwrap().iter().map(|read| read.count).sum();
            prop_assert!(pages <= 2, "{} pages", pages);
        }
        for prefix in 0..prefixes.len() + 3 {
            let prefix = format!("prefix {prefix}").into_bytes();
            let keys = scanned(&storage, &table, &prefix).unwrap();
            prop_assert_eq!(keys, of_prefix(&items, &prefix));
        }
    }
}

proptest! {
    #[test]
    fn names_are_those_of_the_items(
        prefixes in prop::collection::btree_map(
            prop::collection::vec(b'a'..b'd', 0..6), (1u32..4, any::<bool>()), 1..300,
        ),
        start in prop::collection::vec(b'a'..b'd', 0..4),
        mut cuts in prop::collection::vec(any::<u128>(), 0..7),
        joins: bool,
        long: bool,
    ) {
        // Every second part of the hash space, or all parts, which are one again.
        cuts.extend([0, u128::MAX]);
        cuts.sort_unstable();
        cuts.dedup();
        let parts = cuts.windows(2).map(|pair| HashRange::new(pair[0], pair[1] - u128::from(pair[1] < u128::MAX)));
        let ranges: Vec<_> = parts.step_by(if joins { 1 } else { 2 }).collect();
        let storage = MemoryStorage::default();
        let name = |prefix: &[u8]| [prefix, &vec![b'.'; if long { 150 } else { 0 }]].concat();
        let mut items: Vec<_> = prefixes
            .iter()
            .flat_map(|(prefix, &(count, expires))| (0..count).map(move |suffix| {
                let key = [&name(prefix)[..], b"/", &suffix.to_le_bytes()].concat();
                let expires_at_ms = (expires && suffix == 1).then_some(9);
                OwnedItem { expires_at_ms, ..OwnedItem::value(key, "value") }
            }))
            .collect();
        write(&storage, LISTED, &mut items);
        let table = Table::open(&storage, NAME, &[]).unwrap();
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
        let expected: Vec<_> = prefixes
            .iter()
            .filter_map(|(prefix, &(count, expires))| {
                let prefix = name(prefix);
                let hashes = HashRange::of_high_half(SEMI.prefix_hash(&prefix).unwrap());
                let is_whole = joins || ranges.iter().any(|range| range.covers(hashes));
                let hiding = u64::from(expires && count > 1);
                let lasting = if is_whole { u64::from(count) - hiding } else { 0 };
                let counts = PrefixCounts { lasting, hiding };
                let is_wanted = ranges.iter().any(|range| range.overlaps(hashes));
                (is_wanted && prefix >= start).then_some(ListedName { prefix, counts })
            })
            .collect();
        prop_assert_eq!(listed(&table, &start, ranges).unwrap(), expected);
    }
}

#[test]
fn filters_know_prefixes_of_several_items() {
    for (level, items_each, knows) in [(0, 1, true), (1, 1, false), (1, 2, true), (1, 90, true)] {
        let storage = MemoryStorage::default();
        let mut items = items_of(&vec![(items_each, 40); 300]);
        items.sort_by_key(|item| (SEMI.hash(&item.key), item.key.clone()));
        let mut writer = TableWriter::create(&storage, NAME, TableId(7)).unwrap();
        push_section(&mut writer, SectionSpec { hasher: SEMI, level, ..SPEC }, &items);
        writer.finish().unwrap().sync().unwrap();
        let table = Table::open(&storage, NAME, &[]).unwrap();
        let has_pages = |prefix: u32| {
            let name = format!("prefix {prefix}").into_bytes();
            let range = HashRange::of_high_half(SEMI.prefix_hash(&name).unwrap());
            let range = SectionRange { section: Arc::clone(&table.sections()[0]), range };
            !range.extent().unwrap().pages.is_empty()
        };
        assert!((0..300).all(has_pages));
        let in_vain = (300..1300).filter(|&prefix| has_pages(prefix)).count();
        assert!(if knows { in_vain < 20 } else { in_vain > 900 }, "{in_vain} of level {level}");
        assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    }
}

#[test]
fn every_flipped_byte_of_a_semi_sorted_table_is_noticed() {
    let storage = MemoryStorage::default();
    let mut items = items_of(&[(90, 120), (5, 40), (1, 900)]);
    write(&storage, LISTED, &mut items);
    let names = listed(&Table::open(&storage, NAME, &[]).unwrap(), b"", vec![HashRange::ALL]).unwrap();
    let file = storage.file(NAME);
    let is_noticed = || {
        let Ok(table) = Table::open(&storage, NAME, &[]) else { return true };
        let mut buffer = AlignedBuffer::new();
        let mut noticed = false;
        for item in &items {
            match table.sections()[0].get(SEMI.hash(&item.key), &item.key, &mut buffer) {
                Ok(found) => assert_eq!(found, Some(item.borrow())),
                Err(_) => noticed = true,
            }
        }
        match scanned(&storage, &table, b"prefix 0") {
            Ok(keys) => assert_eq!(keys, of_prefix(&items, b"prefix 0")),
            Err(_) => noticed = true,
        }
        match listed(&table, b"", vec![HashRange::ALL]) {
            Ok(found) => assert_eq!(found, names),
            Err(_) => noticed = true,
        }
        noticed | !table.verify(|_| true).unwrap().corruptions.is_empty()
    };
    assert!(!is_noticed());
    for offset in 0..file.bytes().len() {
        file.flip(offset, 1 << (offset % 8));
        assert!(is_noticed(), "byte {offset}");
        file.flip(offset, 1 << (offset % 8));
    }
}

#[test]
fn a_prefix_function_is_asked_for_by_its_name() {
    let half = PrefixFunction::new("half", |key| key.len() / 2).unwrap();
    let hasher =
        KeyHasher::SemiSorted { key0: 1, key1: 2, prefix: PrefixRule::Function(half), lists_prefixes: false };
    let storage = MemoryStorage::default();
    let mut items = items_of(&[(50, 10)]);
    write(&storage, hasher, &mut items);
    let error = Table::open(&storage, NAME, &[]).unwrap_err();
    assert!(matches!(error, Error::PrefixFunction { ref function, .. } if function == "half"), "{error}");
    let table = Table::open(&storage, NAME, &[half]).unwrap();
    let mut buffer = AlignedBuffer::new();
    for item in &items {
        let found = table.sections()[0].get(hasher.hash(&item.key), &item.key, &mut buffer).unwrap();
        assert_eq!(found, Some(item.borrow()));
    }
}
