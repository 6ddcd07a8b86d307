//! Dense tries with fragments, and indexes that are made from the pages.

use alluvium_base::KeyHash;
use alluvium_io::AlignedBuffer;
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{
    HASHER, NAME, OwnedItem, SPEC, colliding_key, fixed_items, items_of_any_size, sorted, table,
    write_sorted_section,
};
use crate::index_memory::MemoryBytes;
use crate::{FilterKind, IndexTarget, Made, Section, SortedIndex, TableWriter, pages_expected};

const SPARSE: IndexTarget = IndexTarget { index: SortedIndex::Trie, fragment_bits: None };
const FENCES: IndexTarget = IndexTarget { index: SortedIndex::FENCES, fragment_bits: None };

fn dense(fragment_bits: u32) -> IndexTarget {
    let fragment_bits = (fragment_bits > 0).then_some(fragment_bits);
    IndexTarget { index: SortedIndex::DenseTrie, fragment_bits }
}

/// Writes `items`, in any order, under a dense trie.
pub(super) fn write_section(writer: &mut TableWriter, items: &[OwnedItem], fragment_bits: Option<u32>) {
    let items = sorted(items);
    let bytes = items.iter().map(|item| item.borrow().encoded_len() as u64).sum();
    let count = items.len() as u64;
    writer.begin_sorted_section(SPEC, SortedIndex::DenseTrie, pages_expected(count, bytes));
    if let Some(bits) = fragment_bits {
        writer.gather_filter(FilterKind::Fragments(bits), count);
    }
    let mut encoding = Vec::new();
    items.iter().for_each(|item| writer.push(item.hash(), &item.encoded(&mut encoding)).unwrap());
    writer.finish_section().unwrap();
}

fn assert_found(section: &Section, items: &[OwnedItem]) {
    let mut buffer = AlignedBuffer::new();
    for item in items {
        let found = section.get(item.hash(), &item.key, &mut buffer).unwrap();
        assert_eq!(found, Some(item.borrow()), "key {:02x?}", item.key);
    }
}

/// Absent keys, of `count`, for which a page would be read.
fn passing(section: &Section, count: u32) -> usize {
    let key = |number: u32| format!("absent {number}");
    let passes = |number: &u32| !section.locate(HASHER.hash(key(*number).as_bytes())).unwrap().is_empty();
    (0..count).filter(passes).count()
}

#[test]
fn fragments_reject_absent_keys_and_leave_memory_before_the_trie() {
    let items = fixed_items(20_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_section(writer, &items, Some(8));
        write_section(writer, &items, None);
    });
    let [filtered, bare] = table.sections() else { panic!("two sections") };
    let passes = passing(filtered, 20_000);
    assert!((40..130).contains(&passes), "{passes} of 20000, 78 expected");
    assert_eq!(passing(bare, 1_000), 1_000);
    let MemoryBytes { filter, index } = filtered.memory_bytes();
    assert!((filter as f64 * 8.0 / 20_000.0 - 8.0).abs() < 0.1, "{filter} bytes of fragments");
    assert!(index as f64 * 8.0 / 20_000.0 < 3.2, "{index} bytes of trie and page starts");
    assert_eq!(bare.memory_bytes(), MemoryBytes { filter: 0, index });

    let memory = filtered.index_memory();
    assert!(filtered.drop_filter());
    memory.set_bytes_max(memory.bytes().index + memory.table_bytes());
    assert_eq!(filtered.lacks(), (true, false));
    assert_eq!(passing(filtered, 1_000), 1_000);
    assert_found(filtered, &items);
    memory.set_bytes_max(u64::MAX);
    assert!(passing(filtered, 20_000) < 130, "there is room, so the fragments came back");
}

#[test]
fn only_the_last_item_of_a_page_needs_the_next_page() {
    let items: Vec<_> = (0..2_000)
        .map(|number| OwnedItem::value(format!("key {number:012}"), vec![number as u8; 1_000]))
        .collect();
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_section(writer, &items, None);
        write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
    });
    let pages_of = |section: &Section| -> u32 {
        items
            .iter()
            .flat_map(|item| section.locate(item.hash()).unwrap().iter().collect::<Vec<_>>())
            .map(|read| read.count)
            .sum()
    };
    let [dense, sparse] = table.sections() else { panic!("two sections") };
    assert!(dense.entry().items_go_on);
    let (of_dense, of_sparse) = (pages_of(dense), pages_of(sparse));
    assert!(of_dense <= 2_600, "{of_dense} pages for 2000 items");
    assert!(of_sparse >= 3_990, "{of_sparse} pages");
    assert_found(dense, &items);
}

/// The state of a section after it was given an index.
fn assert_has(section: &Section, target: IndexTarget, items: &[OwnedItem]) {
    assert!(section.has(target));
    assert!(!section.lacks_index(target), "nothing is left to do");
    assert_found(section, items);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_index_is_made_from_the_pages_of_any_other(
        some in items_of_any_size(120),
        crowd in 0u32..12,
        crowd_bytes in 0usize..1700,
        bits in 1u32..=32,
        order in prop::collection::vec(0usize..4, 1..6),
    ) {
        let crowd = (0..crowd).map(|number| OwnedItem::value(colliding_key(number), vec![1; crowd_bytes]));
        let items: Vec<_> = some.into_iter().chain(crowd).collect();
        let storage = MemoryStorage::default();
        let (table, _) = table(&storage, |writer| {
            write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
            write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
            write_section(writer, &items, None);
            write_section(writer, &items, Some(bits));
        });
        let before = storage.file(NAME).bytes();
        for section in table.sections() {
            for target in order.iter().map(|&number| [SPARSE, FENCES, dense(0), dense(bits)][number]) {
                if !section.can_have(target) {
                    let goes_on = section.entry().items_go_on && target == FENCES;
                    prop_assert!(goes_on || section.page_count() == 0);
                    continue;
                }
                if section.lacks_index(target) {
                    let made = section.make_index(target).unwrap();
                    prop_assert!(matches!(made, Made::Index { .. }), "{:?}", made);
                }
                assert_has(section, target, &items);
            }
            section.drop_index();
            assert_found(section, &items);
        }
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
        prop_assert!(before == storage.file(NAME).bytes(), "no byte is written");
    }
}

#[test]
fn an_index_that_is_made_takes_its_bytes_and_is_dropped_as_a_whole() {
    let items = fixed_items(20_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| {
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
        write_section(writer, &items, Some(8));
    });
    let [made, stored] = table.sections() else { panic!("two sections") };
    let memory = made.index_memory();
    assert_eq!(passing(made, 1_000), 1_000);
    let expected = Made::Index { bytes_read: made.pages_bytes() };
    assert_eq!(made.make_index(dense(8)).unwrap(), expected);
    assert_has(made, dense(8), &items);
    let (of_made, of_stored) = (made.memory_bytes(), stored.index().unwrap().memory_bytes());
    assert!(
        of_made.filter == of_stored.filter && of_made.index.abs_diff(of_stored.index) < 64,
        "{of_made:?}"
    );
    assert!(passing(made, 20_000) < 130);
    let counts = memory.degradation();
    assert_eq!((counts.indexes_made, counts.pages_read_for_indexes), (1, made.page_count().into()));

    assert!(!made.drop_filter(), "half of it is not kept");
    memory.set_bytes_max(memory.table_bytes() + 12_000);
    assert_found(made, &items);
    assert!(made.has(FENCES) && !made.lacks_index(dense(8)), "no room");
    memory.set_bytes_max(u64::MAX);
    assert!(made.lacks_index(dense(8)));
    assert_eq!(made.make_index(dense(8)).unwrap(), expected);
    assert_eq!(made.make_index(FENCES).unwrap(), Made::Index { bytes_read: 0 });
    assert_has(made, FENCES, &items);
}

#[test]
fn fences_over_pages_of_a_trie_cost_few_second_pages() {
    let items = fixed_items(30_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| write_section(writer, &items, None));
    let section = &table.sections()[0];
    section.make_index(FENCES).unwrap();
    assert_has(section, FENCES, &items);
    let pages: usize = items.iter().map(|item| section.locate(item.hash()).unwrap().len()).sum();
    assert!((30_001..30_600).contains(&pages), "{pages} pages for 30000 items");
    let bits = section.memory_bytes().index as f64 * 8.0 / 30_000.0;
    assert!(bits < 0.45, "{bits} bit/key");
}

#[test]
fn no_index_is_made_from_damaged_pages() {
    let items = fixed_items(1_000);
    let storage = MemoryStorage::default();
    let (table, _) = table(&storage, |writer| write_section(writer, &items, None));
    let section = &table.sections()[0];
    let offset = section.page_offset(7) as usize + 100;
    storage.file(NAME).flip(offset, 1);
    assert!(section.lacks_index(SPARSE));
    assert_eq!(section.make_index(SPARSE).unwrap(), Made::Nothing);
    assert!(!section.lacks_index(SPARSE), "it is not tried again");
    storage.file(NAME).flip(offset, 1);
    assert_found(section, &items);
    assert!(section.locate(KeyHash(7)).is_ok());
}
