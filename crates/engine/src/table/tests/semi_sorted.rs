//! Sections of semi-sorted keyspaces: every key and every prefix is found, and damage is noticed.

use std::sync::Arc;

use alluvium_base::{KeyHasher, PrefixFunction, PrefixRule};
use alluvium_io::{AlignedBuffer, Storage};
use proptest::prelude::*;

use super::super::scanner::READ_AHEAD_BYTES;
use super::super::{Error, SectionRange, SectionScanner, SectionSpec, SortedIndex, Table, TableWriter};
use super::memory_storage::MemoryStorage;
use super::{NAME, OwnedItem, SPEC};

const SEMI: KeyHasher =
    KeyHasher::SemiSorted { key0: 1, key1: 2, prefix: PrefixRule::Delimiter { byte: b'/' } };

/// Writes `items`, in any order, as a section of this keyspace.
pub(super) fn write_section(writer: &mut TableWriter, keyspace: u32, items: &[OwnedItem]) {
    let mut items = items.to_vec();
    items.sort_by_key(|item| (SEMI.hash(&item.key), item.key.clone()));
    push_section(writer, SectionSpec { keyspace, hasher: SEMI, ..SPEC }, &items);
}

/// Writes a table of one section with a filter.
fn write(storage: &dyn Storage, hasher: KeyHasher, items: &mut [OwnedItem]) {
    items.sort_by_key(|item| (hasher.hash(&item.key), item.key.clone()));
    let mut writer = TableWriter::create(storage, NAME, 7).unwrap();
    push_section(&mut writer, SectionSpec { hasher, ..SPEC }, items);
    writer.finish().unwrap().sync().unwrap();
}

fn push_section(writer: &mut TableWriter, spec: SectionSpec, items: &[OwnedItem]) {
    let hasher = spec.hasher;
    writer.begin_sorted_section(spec, SortedIndex::ThreeLevel, items.len() as u64 / 30 + 1);
    writer.gather_filter(12, items.len() as u64);
    let mut encoding = Vec::new();
    for item in items.iter() {
        writer.push(hasher.hash(&item.key), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// The keys of a prefix, by a scan of its range of hashes.
fn scanned(storage: &dyn Storage, table: &Table, prefix: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let low = u128::from(SEMI.prefix_hash(prefix).unwrap()) << 64;
    let section = Arc::clone(&table.sections()[0]);
    let range = SectionRange { section, low, high: low | u128::from(u64::MAX) };
    let mut scanner = SectionScanner::chain_ranges(storage, &[range], READ_AHEAD_BYTES)?;
    let mut keys = Vec::new();
    while let Some((_, item)) = scanner.next()? {
        keys.push(item.key.to_vec());
    }
    Ok(keys)
}

/// The keys of a prefix, by looking at all.
fn of_prefix(items: &[OwnedItem], prefix: &[u8]) -> Vec<Vec<u8>> {
    let keys = items.iter().map(|item| item.key.clone());
    keys.filter(|key| SEMI.prefix_of(key) == Some(prefix)).collect()
}

/// So many items of each prefix, with values of up to so many bytes.
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

#[test]
fn every_flipped_byte_of_a_semi_sorted_table_is_noticed() {
    let storage = MemoryStorage::default();
    let mut items = items_of(&[(90, 120), (5, 40), (1, 900)]);
    write(&storage, SEMI, &mut items);
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
    let hasher = KeyHasher::SemiSorted { key0: 1, key1: 2, prefix: PrefixRule::Function(half) };
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
