//! Damaged, cut and foreign files give typed errors, never wrong data and never a panic.

use alluvium_base::checksum::checksum64;
use alluvium_io::{AlignedBuffer, OpenMode, Storage};
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{HASHER, NAME, OwnedItem, small_table};
use crate::directory::ENTRY_BYTES;
use crate::frame::{TRAILER_BYTES, TRAILER_MAGIC};
use crate::{Error, PAGE_BYTES, SectionScanner, Table, fuzz};

/// Uses a damaged file in every possible way. Returns whether any operation noticed the damage.
fn assert_right_or_error(storage: &MemoryStorage, items: &[OwnedItem]) -> bool {
    let table = match Table::open(storage, NAME, &[]) {
        Ok(table) => table,
        Err(Error::Io { .. }) => panic!("damage is no I/O error"),
        Err(_) => return true,
    };
    let mut noticed = false;
    let mut buffer = AlignedBuffer::new();
    for section in table.sections() {
        for item in items {
            match section.get(item.hash(), &item.key, &mut buffer) {
                Ok(found) => assert_eq!(found, Some(item.borrow())),
                Err(error) => noticed |= matches!(error, Error::Corruption(_)),
            }
        }
        match section.get(HASHER.hash(b"absent"), b"absent", &mut buffer) {
            Ok(found) => assert_eq!(found, None),
            Err(error) => noticed |= matches!(error, Error::Corruption(_)),
        }
        let mut scanner = SectionScanner::new(section.clone());
        let mut count = 0;
        let scanned = loop {
            match scanner.next() {
                Ok(Some((_, item))) => {
                    assert!(items.iter().any(|known| known.borrow() == item));
                    count += 1;
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        assert!(!scanned || count == items.len(), "a scan that ends well is complete");
        noticed |= !scanned;
    }
    // Last, so that it sees indexes loaded as lookups left them.
    noticed | !table.verify(|_| true).unwrap().corruptions.is_empty()
}

#[test]
fn every_flipped_byte_is_noticed_and_none_gives_wrong_data() {
    let storage = MemoryStorage::default();
    let (table, items) = small_table(&storage);
    assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    let file = storage.file(NAME);
    assert!(!assert_right_or_error(&storage, &items));
    for offset in 0..file.bytes().len() {
        let mask = 1 << (offset % 8);
        file.flip(offset, mask);
        assert!(assert_right_or_error(&storage, &items), "byte {offset}");
        file.flip(offset, mask);
    }
}

#[test]
fn verify_names_the_damaged_page_and_goes_on() {
    let storage = MemoryStorage::default();
    let (table, items) = small_table(&storage);
    let section = &table.sections()[1];
    let offset = section.page_offset(1);
    storage.file(NAME).flip(offset as usize + 100, 1);
    let report = table.verify(|_| true).unwrap();
    assert_eq!(report.corruptions.len(), 1);
    assert_eq!((report.corruptions[0].file.as_str(), report.corruptions[0].offset), (NAME, offset));
    assert!(report.item_count < 7 * items.len() as u64 && report.item_count > 6 * items.len() as u64);
}

#[test]
fn a_page_in_anothers_place_is_noticed() {
    let storage = MemoryStorage::default();
    let (table, items) = small_table(&storage);
    let file = storage.file(NAME);
    let section = &table.sections()[1];
    assert!(section.page_count() >= 2);
    let [first, second] = [0, 1].map(|page| section.page_offset(page));
    let page = &file.bytes()[first as usize..][..PAGE_BYTES];
    storage.open(NAME, OpenMode::Write).unwrap().write_at(page, second).unwrap();
    assert!(assert_right_or_error(&storage, &items));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let storage = MemoryStorage::default();
    small_table(&storage);
    let bytes = storage.file(NAME).bytes();
    for len in 0..bytes.len() {
        let cut = MemoryStorage::with_file(NAME, &bytes[..len]);
        let error = Table::open(&cut, NAME, &[]).unwrap_err();
        assert!(matches!(error, Error::Corruption(_)), "{len} bytes: {error}");
    }
}

#[test]
fn foreign_newer_and_older_files_are_refused_with_the_reason() {
    let foreign = MemoryStorage::with_file(NAME, &[b'x'; 3 * PAGE_BYTES]);
    let error = Table::open(&foreign, NAME, &[]).unwrap_err().to_string();
    assert!(error.contains(NAME) && error.contains("MUIVULLA"), "{error}");

    let storage = MemoryStorage::default();
    small_table(&storage);
    let mut bytes = storage.file(NAME).bytes();
    let start = bytes.len() - TRAILER_BYTES;
    let mut of_version = |major: u8| {
        bytes[start + 40] = major;
        let checksum = checksum64(&bytes[start..start + 48], u64::from_le_bytes(TRAILER_MAGIC));
        bytes[start + 48..start + 56].copy_from_slice(&checksum.to_le_bytes());
        Table::open(&MemoryStorage::with_file(NAME, &bytes), NAME, &[]).unwrap_err()
    };
    let error = of_version(9);
    assert!(matches!(error, Error::NewerFormat { found_major: 9, .. }), "{error}");
    assert!(error.to_string().contains("newer build"), "{error}");
    let error = of_version(1);
    assert!(matches!(error, Error::OlderFormat { found_major: 1, .. }), "{error}");
    assert!(error.to_string().contains("older build"), "{error}");
}

#[test]
fn a_failed_load_of_an_index_is_tried_again() {
    let storage = MemoryStorage::default();
    let (table, items) = small_table(&storage);
    let file = storage.file(NAME);
    let section = &table.sections()[0];
    let (filter, index) = (section.entry().filter.offset as usize, section.entry().index.offset as usize);
    // Lookups work without either of them, but not without both.
    file.flip(filter, 1);
    file.flip(index, 1);
    assert!(matches!(section.locate(items[0].hash()), Err(Error::Corruption(_))));
    file.flip(filter, 1);
    assert_eq!(section.locate(items[0].hash()).unwrap().len(), 1);
    file.flip(index, 1);
    section.drop_index();
    assert_eq!(section.locate(items[0].hash()).unwrap().len(), 1);
}

proptest! {
    #[test]
    fn parsers_survive_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..5000)) {
        fuzz::page(&bytes);
        fuzz::trailer(&bytes);
        fuzz::directory(&bytes);
        fuzz::header(&bytes);
        fuzz::index(&bytes);
    }

    #[test]
    fn parsers_survive_mutated_bytes(
        mutations in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let storage = MemoryStorage::default();
        let (table, _) = small_table(&storage);
        let bytes = storage.file(NAME).bytes();
        let (padding, _) = table.padding();
        let directory = (table.sections().len() * ENTRY_BYTES + 8).abs_diff(padding as usize)..padding as usize;
        let index = table.sections().last().unwrap().entry().index;
        let index = index.offset as usize..(index.offset + index.len) as usize;
        let mutated = |range: std::ops::Range<usize>| {
            let mut part = bytes[range].to_vec();
            for (at, byte) in &mutations {
                let at = at.index(part.len());
                part[at] = *byte;
            }
            part
        };
        fuzz::page(&mutated(PAGE_BYTES..2 * PAGE_BYTES));
        fuzz::directory(&mutated(directory));
        fuzz::index(&mutated(index));
        fuzz::trailer(&mutated(bytes.len() - TRAILER_BYTES..bytes.len()));
        fuzz::header(&mutated(0..PAGE_BYTES));
    }
}
