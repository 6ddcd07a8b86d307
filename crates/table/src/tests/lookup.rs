//! Every item is found with as few reads as promised, and nothing else is.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, KeyspaceId, TableId};
use alluvium_io::{AlignedBuffer, FileStorage, IoOptions};
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{
    HASHER, NAME, OwnedItem, SLOT_PAGES, SPEC, colliding_key, cuckoo_table, dense, fixed_items,
    items_of_any_size, sorted, table, write_hash_section, write_sorted_section,
};
use crate::index_memory::MemoryBytes;
use crate::{Error, ITEM_BYTES_MAX, Layout, PAGE_BYTES, Section, SectionSpec, SortedIndex, TableWriter};

/// Looks up `items`, all of which are in `section`, and some keys that are not.
fn assert_found(section: &Section, items: &[OwnedItem]) {
    let mut buffer = AlignedBuffer::new();
    for item in items {
        let found = section.get(item.hash(), &item.key, &mut buffer).unwrap();
        assert_eq!(found, Some(item.borrow()), "key {:02x?}", item.key);
    }
    for number in 0..50u32 {
        let key =
            [b"absent key of 210 bytes, longer than any other. ".repeat(5), number.to_le_bytes().to_vec()];
        let key = key.concat();
        assert_eq!(section.get(HASHER.hash(&key), &key, &mut buffer).unwrap(), None);
    }
}

fn assert_totals(section: &Section, items: &[OwnedItem]) {
    let sum = |of: fn(&OwnedItem) -> usize| items.iter().map(|item| of(item) as u64).sum::<u64>();
    assert_eq!(section.item_count(), items.len() as u64);
    assert_eq!(section.tombstone_count(), sum(|item| usize::from(item.borrow().is_tombstone())));
    assert_eq!(section.expiring_count(), sum(|item| usize::from(item.expires_at_ms.is_some())));
    assert_eq!(section.key_bytes(), sum(|item| item.key.len()));
    assert_eq!(section.value_bytes(), sum(|item| item.value.len()));
    let live = sum(|item| if item.borrow().is_tombstone() { 0 } else { item.key.len() + item.value.len() });
    assert_eq!(section.live_bytes(), live);
    assert_eq!(section.pages_bytes(), u64::from(section.page_count()) * PAGE_BYTES as u64);
    assert!(section.used_bytes() <= section.pages_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn items_of_any_size_are_found(
        items in items_of_any_size(150),
        tag_bits in 4u32..=15,
        resolution_bits in 0u32..12,
    ) {
        let storage = MemoryStorage::default();
        let (table, info) = table(&storage, |writer| {
            write_hash_section(writer, SPEC, &items, tag_bits);
            write_sorted_section(writer, SPEC, &items, SortedIndex::Fences { resolution_bits });
            write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
            write_sorted_section(writer, SPEC, &items, SLOT_PAGES);
            write_sorted_section(writer, SPEC, &items, SortedIndex::DenseTrie);
        });
        prop_assert_eq!(info.item_count, 5 * items.len() as u64);
        prop_assert_eq!(info.file_bytes, table.file_bytes());
        for section in table.sections() {
            assert_found(section, &items);
            assert_totals(section, &items);
        }
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    }

    #[test]
    fn keys_of_one_hash_are_told_apart(
        count in 1u32..40,
        value_len in 0usize..1700,
        bits in 1u32..=32,
        others in items_of_any_size(30),
    ) {
        let same: Vec<_> = (0..count)
            .map(|number| OwnedItem::value(colliding_key(number), vec![number as u8; value_len]))
            .collect();
        let storage = MemoryStorage::default();
        let (table, _) = table(&storage, |writer| {
            let few: Vec<_> = same.iter().take(8).cloned().collect();
            write_hash_section(writer, SPEC, &few, 15);
            let all: Vec<_> = same.iter().chain(&others).cloned().collect();
            write_sorted_section(writer, SPEC, &all, SortedIndex::FENCES);
            write_sorted_section(writer, SPEC, &all, SortedIndex::Trie);
            write_sorted_section(writer, SPEC, &all, SLOT_PAGES);
            dense::write_section(writer, &all, Some(bits));
        });
        assert_found(&table.sections()[0], &same[..same.len().min(8)]);
        for section in &table.sections()[1..] {
            assert_found(section, &same);
            assert_found(section, &others);
        }
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
    }
}

#[test]
fn a_hit_costs_one_read() {
    let items = fixed_items(20_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        for shard in items.chunks(5_000) {
            write_hash_section(writer, SPEC, shard, 15);
        }
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
        write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
        write_sorted_section(writer, SPEC, &items, SLOT_PAGES);
        write_sorted_section(writer, SPEC, &items, SortedIndex::DenseTrie);
    });
    let file = storage.file(NAME);
    let [shards @ .., fences_section, trie_section, pages_section, dense_section] = table.sections() else {
        panic!("seven sections")
    };
    for section in table.sections() {
        section.index().unwrap();
    }
    let before = file.reads();
    for (section, items) in shards.iter().zip(items.chunks(5_000)) {
        let mut buffer = AlignedBuffer::new();
        for item in items {
            assert!(section.get(item.hash(), &item.key, &mut buffer).unwrap().is_some());
        }
    }
    let reads_of_hits = file.reads() - before;
    assert!(reads_of_hits <= 20_020, "{reads_of_hits} reads for 20000 hits of hash layout");

    let mut buffer = AlignedBuffer::new();
    let before = file.reads();
    for number in 0..20_000u32 {
        let key = format!("absent {number}");
        assert_eq!(shards[0].get(HASHER.hash(key.as_bytes()), key.as_bytes(), &mut buffer).unwrap(), None);
    }
    let reads_of_misses = file.reads() - before;
    assert!(reads_of_misses <= 15, "{reads_of_misses} reads for 20000 absent keys of hash layout");

    for section in [fences_section, trie_section, dense_section] {
        let before = file.reads();
        assert_found(section, &items);
        assert_eq!(file.reads() - before, 20_050, "one read for every hit and miss of sorted layout");
    }
    let before = file.reads();
    assert_found(pages_section, &items);
    let reads = file.reads() - before;
    assert!(
        (20_000..=20_020).contains(&reads),
        "{reads} reads for 20000 hits and 50 misses with a page of each"
    );
}

#[test]
fn only_keys_of_a_crowded_cell_cost_more_reads() {
    let crowd: Vec<_> = (0..9).map(|number| OwnedItem::value(colliding_key(number), vec![0; 1500])).collect();
    let others = fixed_items(3_000);
    let all = [&crowd[..], &others].concat();
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_sorted_section(writer, SPEC, &all, SortedIndex::FENCES);
        write_sorted_section(writer, SPEC, &all, SortedIndex::Trie);
        write_sorted_section(writer, SPEC, &all, SLOT_PAGES);
        write_sorted_section(writer, SPEC, &all, SortedIndex::DenseTrie);
    });
    let crowd_cell = crowd[0].hash().high() >> 44;
    for section in table.sections() {
        assert_found(section, &all);
        // Two per page, and the last one continues in a page of others.
        let reads: Vec<_> = section.locate(crowd[0].hash()).unwrap().iter().map(|read| read.count).collect();
        assert_eq!(reads, [1, 1, 1, 2]);
        for item in others.iter().filter(|item| item.hash().high() >> 44 != crowd_cell) {
            let pages = section.locate(item.hash()).unwrap();
            // For page 0 the index cannot tell whether it starts in the cell.
            assert!(pages.len() == 1 || pages.iter().map(|read| read.page).eq([0, 1]), "{pages:?}");
        }
    }
}

#[test]
fn items_of_116_bytes_pack_34_to_a_page() {
    let items = fixed_items(34 * 100);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_hash_section(writer, SPEC, &items, 15);
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
    });
    assert_eq!(table.sections()[0].page_count(), 100);
    assert_eq!(table.sections()[0].used_bytes(), table.sections()[0].pages_bytes());
    // Ending pages between cells may cost a page in a hundred.
    assert!(table.sections()[1].page_count() <= 101, "{} pages", table.sections()[1].page_count());
}

#[test]
fn opening_reads_once_and_a_first_lookup_once_more() {
    let storage = MemoryStorage::default();
    let items = fixed_items(100);
    drop(table(&storage, |writer| {
        for _ in 0..300 {
            write_hash_section(writer, SPEC, &items[..1], 15);
        }
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
    }));
    let file = storage.file(NAME);
    let before = file.reads();
    let table = super::Table::open(&storage, NAME, &[]).unwrap();
    assert_eq!(file.reads() - before, 2, "a directory of 301 sections takes a second read");
    let section = &table.sections()[0];
    assert_eq!(section.memory_bytes(), MemoryBytes::default());
    section.locate(items[0].hash()).unwrap();
    assert_eq!(file.reads() - before, 3, "filter and fences together");
    section.locate(items[0].hash()).unwrap();
    assert_eq!(file.reads() - before, 3);
    assert!(section.memory_bytes().filter > 0 && section.memory_bytes().index > 0);
}

#[test]
fn sections_of_one_file_are_told_apart() {
    let storage = MemoryStorage::default();
    let middle = 1 << 127;
    let items = fixed_items(500);
    let (low, high): (Vec<_>, Vec<_>) = items.into_iter().partition(|item| item.hash().0 < middle);
    let low_spec = SectionSpec { keyspace: KeyspaceId(1), range: HashRange::new(0, middle - 1), ..SPEC };
    let high_spec = SectionSpec { keyspace: KeyspaceId(2), range: HashRange::new(middle, u128::MAX), ..SPEC };
    let (table, info) = table(&storage, |writer| {
        write_sorted_section(writer, low_spec, &low, SortedIndex::FENCES);
        write_hash_section(writer, SPEC, &[], 15);
        write_hash_section(writer, high_spec, &high, 12);
    });
    assert_eq!((info.section_count, info.file_number), (3, TableId(7)));
    let [first, empty, last] = table.sections() else { panic!("three sections") };
    assert_eq!(
        (first.keyspace(), first.range(), first.layout()),
        (KeyspaceId(1), low_spec.range, Layout::Sorted)
    );
    assert_eq!(
        (last.keyspace(), last.range(), last.layout()),
        (KeyspaceId(2), high_spec.range, Layout::Hash)
    );
    assert_eq!((empty.item_count(), empty.page_count()), (0, 0));
    assert_found(first, &low);
    assert_found(empty, &[]);
    assert_found(last, &high);
    assert_eq!(first.hasher(), HASHER);
    assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
}

#[test]
fn a_filter_spares_a_sorted_section_its_reads() {
    let items = sorted(&fixed_items(1_000));
    let cuckoo = cuckoo_table(&items);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        writer.begin_sorted_section(SPEC, SortedIndex::FENCES, 30);
        for item in &items {
            writer.push(item.hash(), &item.encoded(&mut Vec::new())).unwrap();
        }
        writer.set_filter(alluvium_index::hash_filter::HashFilter::from_table(&cuckoo, 12));
        writer.finish_section().unwrap();
    });
    let section = &table.sections()[0];
    assert_found(section, &items);
    let absent = (0..1_000u64).filter(|&low| {
        let hash = KeyHash::from_halves(low << 54, low.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        !section.locate(hash).unwrap().is_empty()
    });
    assert!(absent.count() < 20);
    assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
}

#[test]
fn an_item_above_half_a_page_is_refused_and_the_section_goes_on() {
    let storage = MemoryStorage::default();
    let largest = OwnedItem::value(b"largest".to_vec(), vec![1; ITEM_BYTES_MAX - 11]);
    let too_large = OwnedItem::value(b"larger".to_vec(), vec![1; ITEM_BYTES_MAX - 9]);
    assert_eq!(largest.borrow().encoded_len(), ITEM_BYTES_MAX);
    let (table, _) = table(&storage, |writer| {
        writer.begin_sorted_section(SPEC, SortedIndex::FENCES, 1);
        let refused = writer.push(KeyHash(0), &too_large.encoded(&mut Vec::new())).unwrap_err();
        assert!(matches!(
            refused,
            Error::ItemTooLarge { encoded_bytes, encoded_bytes_max: ITEM_BYTES_MAX }
                if encoded_bytes == ITEM_BYTES_MAX + 1
        ));
        writer.push(largest.hash(), &largest.encoded(&mut Vec::new())).unwrap();
        writer.finish_section().unwrap();
    });
    assert_found(&table.sections()[0], &[largest]);
}

#[test]
fn a_name_that_is_taken_is_an_error() {
    let storage = MemoryStorage::with_file(NAME, b"");
    let error = TableWriter::create(&storage, NAME, TableId(7)).unwrap_err();
    assert!(matches!(&error, Error::Io { .. }) && error.to_string().contains(NAME), "{error}");
}

#[test]
fn real_files_hold_tables() {
    let directory = tempfile::tempdir().unwrap();
    let storage = FileStorage::create(directory.path(), IoOptions::default()).unwrap();
    let items = fixed_items(30_000);
    let (table, info) = table(&storage, |writer| {
        write_hash_section(writer, SPEC, &items[..10_000], 15);
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
    });
    assert_eq!(std::fs::metadata(directory.path().join(NAME)).unwrap().len(), info.file_bytes);
    assert_found(&table.sections()[0], &items[..10_000]);
    assert_found(&table.sections()[1], &items);
    let report = table.verify(|_| true).unwrap();
    assert_eq!((report.item_count, report.corruptions), (40_000, vec![]));
}

#[test]
fn without_its_filter_a_section_names_the_pages_of_both_buckets() {
    let items = fixed_items(8_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_hash_section(writer, SPEC, &items, 15);
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
    });
    for section in table.sections() {
        assert_eq!(section.lacks(), (section.layout() == Layout::Hash, true));
        let whole = section.index().unwrap().memory_bytes();
        assert_eq!(section.drop_filter(), section.layout() == Layout::Hash);
        assert_eq!(section.memory_bytes(), MemoryBytes { filter: 0, ..whole });
        let index = section.index().unwrap();
        assert!(index.is_whole(), "there is room, so the filter came back");
        assert!(section.drop_index() && !section.drop_index());
        assert_eq!(section.memory_bytes(), MemoryBytes::default());
        assert_found(section, &items);
        assert_eq!(section.memory_bytes(), whole);
    }
    let memory = table.sections()[0].index_memory();
    let section = &table.sections()[0];
    assert!(section.drop_filter());
    memory.set_bytes_max(memory.bytes().index + memory.table_bytes());
    assert_eq!(section.lacks(), (true, false));
    let pages: usize = items.iter().map(|item| section.locate(item.hash()).unwrap().len()).sum();
    assert!((16_000 - 800..=16_000 + 2_400).contains(&pages), "{pages} pages for 8000 keys: about two each");
    assert_found(section, &items);
    let reads = storage.file(NAME).reads();
    memory.set_bytes_max(0);
    assert_eq!(section.lacks(), (true, true));
    assert!(section.locate(items[0].hash()).unwrap().len() == 1);
    assert_eq!((storage.file(NAME).reads() - reads, memory.degradation().index_reads), (1, 1));
    assert_found(section, &items);
    assert_found(&table.sections()[1], &items);
    assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
}

#[test]
fn many_threads_share_a_section() {
    let items = Arc::new(fixed_items(3_000));
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| write_hash_section(writer, SPEC, &items, 15));
    let section = &table.sections()[0];
    let before = storage.file(NAME).reads();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| section.index().unwrap());
        }
    });
    assert_eq!(storage.file(NAME).reads() - before, 1, "one thread loads, the others wait");
    assert_found(section, &items);
}
