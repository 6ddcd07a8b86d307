//! The loss of pages to packing, and the cost of items on two pages, for any size of items.

use std::sync::Arc;

use alluvium_base::{KeyspaceId, TableId};
use alluvium_io::AlignedBuffer;

use super::memory_storage::MemoryStorage;
use super::{
    HASHER, NAME, OwnedItem, SLOT_PAGES, SPEC, colliding_key, sorted, table, write_hash_section,
    write_sorted_section,
};
use crate::page::PAGE_LOSS_MAX;
use crate::{PAGE_BYTES, SectionScanner, SectionSpec, SortedIndex, Table, salvage_file};

/// Items with 16-byte keys of `bytes` encoded bytes.
fn items_of(bytes: usize, count: usize) -> Vec<OwnedItem> {
    let header = 3 + usize::from(bytes > 16 + 3 + 127);
    (0..count)
        .map(|number| OwnedItem::value(format!("key {number:012}"), vec![number as u8; bytes - 16 - header]))
        .collect()
}

/// A section of hash layout, one under fences, one under a trie of pages and one under a trie of items.
fn four_kinds(storage: &MemoryStorage, items: &[OwnedItem]) -> Table {
    let (table, _) = table(storage, |writer| {
        write_hash_section(writer, SPEC, items, 15);
        write_sorted_section(writer, SPEC, items, SortedIndex::FENCES);
        write_sorted_section(writer, SPEC, items, SortedIndex::Trie);
        write_sorted_section(writer, SPEC, items, SortedIndex::DenseTrie);
    });
    table
}

/// Sizes of 20 to 2039 encoded bytes, in steps of a fifteenth, and those that fill a page worst when not split.
fn sizes() -> Vec<usize> {
    let steps = std::iter::successors(Some(20), |size: &usize| Some(size + size / 15 + 1));
    let worst = (2..16).map(|items| (PAGE_BYTES - 16) / items);
    let mut sizes: Vec<_> = steps.take_while(|size| *size < 2039).chain(worst).chain([2039]).collect();
    sizes.retain(|size| *size <= 2039);
    sizes
}

#[test]
fn pages_lose_at_most_a_tenth_at_any_size() {
    for bytes in sizes() {
        let items = items_of(bytes, 300 * 4096 / bytes);
        let storage = MemoryStorage::default();
        for (kind, section) in
            ["hash", "fences", "trie", "dense"].iter().zip(four_kinds(&storage, &items).sections())
        {
            let stored = items.len() * (bytes + 1);
            let loss = 1.0 - stored as f64 / section.pages_bytes() as f64;
            assert!(
                loss <= 0.1,
                "{kind}: items of {bytes} bytes lose {loss:.4} of {} pages",
                section.page_count()
            );
            if bytes < PAGE_LOSS_MAX {
                assert!(!section.entry().items_go_on, "{kind}: small items stay on one page");
            }
        }
    }
}

#[test]
fn a_hit_is_one_request_and_of_two_pages_only_for_the_last_item_of_a_page() {
    for bytes in [300, 600, 1020, 1500, 2039] {
        let items = items_of(bytes, 8_000);
        let storage = MemoryStorage::default();
        let table = four_kinds(&storage, &items);
        let [hash_section, fences_section, trie_section, dense_section] = table.sections() else {
            panic!("four sections")
        };
        for section in [hash_section, fences_section, trie_section, dense_section] {
            let mut buffer = AlignedBuffer::new();
            let (mut reads, mut pages) = (0, 0);
            for item in &items {
                let list = section.locate(item.hash()).unwrap();
                reads += list.len();
                pages += list.iter().map(|read| read.count as usize).sum::<usize>();
                assert_eq!(section.get(item.hash(), &item.key, &mut buffer).unwrap(), Some(item.borrow()));
            }
            assert!(reads <= items.len() + items.len() / 500, "{bytes} bytes: {reads} reads");
            let last_items = section.page_count() as usize;
            if !Arc::ptr_eq(section, trie_section) {
                assert!(pages <= reads + last_items + last_items / 20, "{bytes} bytes: {pages} pages");
            }
        }
        assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    }
}

/// In hash layout a lookup without the filter tries all slots of both buckets, including the last one of a page.
#[test]
fn items_that_go_on_are_found_without_filter_and_index() {
    for bytes in [340, 1020, 1500] {
        let items = items_of(bytes, 4_000);
        let storage = MemoryStorage::default();
        let table = four_kinds(&storage, &items);
        let section = &table.sections()[0];
        assert!(section.entry().items_go_on);
        let memory = section.index_memory();
        let mut buffer = AlignedBuffer::new();
        for table_section in table.sections() {
            table_section.index().unwrap();
        }
        assert!(section.drop_filter());
        memory.set_bytes_max(memory.bytes().index + memory.table_bytes());
        assert_eq!(section.lacks(), (true, false));
        let mut with_next = 0;
        for item in &items {
            with_next += section.locate(item.hash()).unwrap().iter().filter(|read| read.count == 2).count();
            assert_eq!(section.get(item.hash(), &item.key, &mut buffer).unwrap(), Some(item.borrow()));
        }
        assert!(
            with_next >= section.page_count() as usize / 2,
            "{bytes} bytes: {with_next} reads of two pages"
        );
        memory.set_bytes_max(0);
        for section in table.sections() {
            assert!(section.lacks().1, "no index stays");
            for item in items.iter().step_by(7) {
                assert_eq!(section.get(item.hash(), &item.key, &mut buffer).unwrap(), Some(item.borrow()));
            }
        }
        assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    }
}

/// Without the filter a lookup reads the pages of all items in its two buckets.
#[test]
fn pages_of_slots_lead_to_items_without_filter_and_index() {
    for bytes in [40, 340, 1500] {
        let items = items_of(bytes, 4_000);
        let storage = MemoryStorage::default();
        let (table, _) = table(&storage, |writer| write_sorted_section(writer, SPEC, &items, SLOT_PAGES));
        let section = &table.sections()[0];
        let memory = section.index_memory();
        section.index().unwrap();
        let bytes_of_slot = section.memory_bytes().index as f64 / items.len() as f64;
        assert!((4.0..4.4).contains(&bytes_of_slot), "{bytes_of_slot} bytes of index per item");
        assert!(section.drop_filter());
        memory.set_bytes_max(memory.bytes().index + memory.table_bytes());
        let mut buffer = AlignedBuffer::new();
        for bytes_max in [memory.bytes().index + memory.table_bytes(), 0] {
            memory.set_bytes_max(bytes_max);
            assert_eq!(section.lacks(), (true, bytes_max == 0));
            for item in items.iter().step_by(if bytes_max == 0 { 17 } else { 1 }) {
                assert!(section.locate(item.hash()).unwrap().len() <= 8);
                assert_eq!(section.get(item.hash(), &item.key, &mut buffer).unwrap(), Some(item.borrow()));
            }
        }
    }
}

#[test]
fn absent_keys_seldom_read_a_second_page() {
    let items = items_of(1020, 8_000);
    let storage = MemoryStorage::default();
    let table = four_kinds(&storage, &items);
    let section = &table.sections()[1];
    let (mut reads, mut pages) = (0, 0);
    for number in 0..8_000 {
        let list = section.locate(HASHER.hash(format!("absent {number}").as_bytes())).unwrap();
        reads += list.len();
        pages += list.iter().map(|read| read.count as usize).sum::<usize>();
    }
    assert_eq!(reads, 8_000);
    assert!(pages <= 8_200, "{pages} pages for 8,000 absent keys");
}

/// Groups of one hash of all sizes between items of all sizes, so that pages of crowded cells follow pages whose last
/// item continues.
#[test]
fn crowds_behind_items_that_go_on_are_found() {
    for crowd_size in 1..9 {
        for bytes in [1020, 1300, 2039] {
            let crowd: Vec<_> = (0..crowd_size)
                .map(|number| OwnedItem::value(colliding_key(number), vec![7; 1700]))
                .collect();
            for others in 0..24 {
                let all = [&crowd[..], &items_of(bytes, others)].concat();
                let storage = MemoryStorage::default();
                let (table, _) = table(&storage, |writer| {
                    write_sorted_section(writer, SPEC, &all, SortedIndex::Fences { resolution_bits: 3 });
                    write_sorted_section(writer, SPEC, &all, SortedIndex::Trie);
                    write_sorted_section(writer, SPEC, &all, SLOT_PAGES);
                    write_sorted_section(writer, SPEC, &all, SortedIndex::DenseTrie);
                });
                let mut buffer = AlignedBuffer::new();
                for section in table.sections() {
                    for item in &all {
                        let found = section.get(item.hash(), &item.key, &mut buffer).unwrap();
                        assert_eq!(found, Some(item.borrow()), "{crowd_size} beside {others} of {bytes}");
                    }
                }
                assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
            }
        }
    }
}

#[test]
fn every_flipped_byte_of_items_on_two_pages_is_noticed() {
    let items = items_of(1020, 20);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_hash_section(writer, SPEC, &items, 15);
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
    });
    assert!(table.sections().iter().all(|section| section.entry().items_go_on));
    let file = storage.file(NAME);
    let mut buffer = AlignedBuffer::new();
    let pages_end = (1 + table.sections().iter().map(|section| section.page_count() as usize).sum::<usize>())
        * PAGE_BYTES;
    for offset in (PAGE_BYTES..pages_end).step_by(7) {
        file.flip(offset, 1 << (offset % 8));
        for section in table.sections() {
            for item in &items {
                if let Ok(found) = section.get(item.hash(), &item.key, &mut buffer) {
                    assert_eq!(found, Some(item.borrow()));
                }
            }
            let mut scanner = SectionScanner::new(Arc::clone(section));
            while let Ok(Some((_, item))) = scanner.next() {
                assert!(items.iter().any(|known| known.borrow() == item));
            }
        }
        assert_ne!(table.verify(|_| true).unwrap().corruptions, [], "byte {offset}");
        file.flip(offset, 1 << (offset % 8));
    }
}

#[test]
fn a_lost_page_costs_its_items_and_the_one_that_goes_on_in_it() {
    let items = sorted(&items_of(1020, 400));
    let storage = MemoryStorage::default();
    let spec = SectionSpec { keyspace: KeyspaceId(3), ..SPEC };
    let (table, _) =
        table(&storage, |writer| write_sorted_section(writer, spec, &items, SortedIndex::FENCES));
    let section = &table.sections()[0];
    let salvaged = |section: &crate::Section| {
        let mut keys = Vec::new();
        let pages = section.salvage(|item| keys.push(item.item.item.key.to_vec()));
        assert_eq!(pages.items as usize, keys.len());
        (pages.lost, keys)
    };
    let everything: Vec<_> = items.iter().map(|item| item.key.clone()).collect();
    let by_hash = |mut keys: Vec<Vec<u8>>| {
        keys.sort_by_key(|key| HASHER.hash(key));
        keys
    };
    let (lost, keys) = salvaged(section);
    assert_eq!((lost, by_hash(keys)), (0, everything.clone()));

    let file = storage.file(NAME);
    file.flip(section.page_offset(20) as usize + 2_000, 1);
    let (lost, keys) = salvaged(section);
    assert_eq!(lost, 1);
    assert!((395..=396).contains(&keys.len()), "{} of 400", keys.len());
    let mut without_directory = Vec::new();
    let pages = salvage_file(&storage, NAME, TableId(7), &[(KeyspaceId(3), HASHER)], |item| {
        without_directory.push(item.item.item.key.to_vec());
    });
    assert_eq!(pages.unwrap().lost, 1);
    assert_eq!(by_hash(without_directory), by_hash(keys));
}
