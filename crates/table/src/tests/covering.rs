//! Filters that name one table of a stack: they miss no table, and name the youngest table that has a key.

use std::sync::Arc;

use alluvium_base::{HashRange, TableId};
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{HASHER, NAME, OwnedItem, SPEC, colliding_key, sorted};
use crate::{Asked, CoveringSpec, Section, SectionSpec, SortedIndex, Table, TableWriter, pages_expected};

/// So narrow that every other new key meets a fingerprint that is present.
const FINGERPRINT_BITS: u32 = 4;

fn write(
    writer: &mut TableWriter,
    spec: SectionSpec,
    items: &[OwnedItem],
    below: Vec<Arc<Section>>,
    bits: u32,
) {
    let bytes = items.iter().map(|item| item.borrow().encoded_len() as u64).sum();
    writer.begin_sorted_section(spec, SortedIndex::FENCES, pages_expected(items.len() as u64, bytes));
    writer.gather_covering_filter(CoveringSpec { fingerprint_bits: bits, below }, items.len() as u64);
    let mut encoding = Vec::new();
    for item in &sorted(items) {
        writer.push(item.hash(), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// Writes `items`, in any order, as a section of sorted layout with a filter that could cover others.
pub(super) fn write_section(writer: &mut TableWriter, items: &[OwnedItem]) {
    write(writer, SPEC, items, Vec::new(), 12);
}

fn table(
    storage: &MemoryStorage,
    number: u64,
    spec: SectionSpec,
    items: &[OwnedItem],
    below: Vec<Arc<Section>>,
) -> Table {
    let name = if number == 7 { NAME.to_owned() } else { format!("{number:06}.table") };
    let mut writer = TableWriter::create(storage, &name, TableId(number)).unwrap();
    write(&mut writer, spec, items, below, FINGERPRINT_BITS);
    writer.finish().unwrap().sync().unwrap();
    Table::open(storage, &name, &[]).unwrap()
}

fn key(number: u32) -> Vec<u8> {
    if number < 20 { colliding_key(number) } else { number.to_le_bytes().to_vec() }
}

/// Numbers of the tables that the filter of the first of `stack` names for a key, 0 for the youngest.
fn named(stack: &[Arc<Section>], key: &[u8]) -> Vec<usize> {
    let Asked::Runs(verdict) = stack[0].ask(HASHER.hash(key)).unwrap() else { panic!("it is in memory") };
    let says = |depth: usize| verdict.says(depth, stack[depth].file_number()) == Some(true);
    (0..stack.len()).filter(|&depth| says(depth)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Compares with which tables were given the key. Some keys have one hash; for all others only one table is named,
    /// the youngest that has the key, however many share its fingerprint.
    #[test]
    fn the_youngest_table_of_a_key_is_named_alone(
        tables in prop::collection::vec((prop::collection::btree_set(0u32..600, 1..300), any::<bool>()), 1..9),
        dropped: bool,
    ) {
        let storage = MemoryStorage::default();
        let half = HashRange::new(0, u128::MAX / 2);
        let mut stack: Vec<Arc<Section>> = Vec::new();
        let mut given: Vec<Vec<Vec<u8>>> = Vec::new();
        let mut range = HashRange::ALL;
        for (number, (keys, is_half)) in tables.iter().enumerate() {
            // A container is sometimes halved: then the new table covers less than those below it.
            range = if *is_half && number > 2 { half } else { range };
            let spec = SectionSpec { range, ..SPEC };
            let items: Vec<_> = keys.iter().map(|&number| OwnedItem::value(key(number), vec![7; 90])).collect();
            let items: Vec<_> = items.into_iter().filter(|item| range.contains(item.hash().0)).collect();
            if items.is_empty() {
                continue;
            }
            if dropped {
                stack.iter().for_each(|section| section.set_covered());
            }
            let table = table(&storage, 10 + number as u64, spec, &items, stack.clone());
            prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
            stack.insert(0, table.sections()[0].clone());
            given.insert(0, items.into_iter().map(|item| item.key).collect());
            let expected_files: Vec<TableId> = stack.iter().map(|section| section.file_number()).collect();
            prop_assert_eq!(stack[0].names_tables().unwrap(), Some(expected_files));
            for number in (0..700).filter(|&number| range.contains(HASHER.hash(&key(number)).0)) {
                let key = key(number);
                let tables_of_key: Vec<usize> =
                    (0..stack.len()).filter(|&depth| given[depth].contains(&key)).collect();
                let named = named(&stack, &key);
                if number < 20 {
                    prop_assert!(tables_of_key.first().is_none_or(|youngest| named.contains(youngest)));
                } else if let Some(&youngest) = tables_of_key.first() {
                    prop_assert_eq!(named, vec![youngest]);
                } else {
                    prop_assert!(named.len() <= 1, "an absent key costs one read at most");
                }
            }
        }
    }
}

#[test]
fn tables_that_are_gone_are_not_asked_and_others_answer_for_themselves() {
    let storage = MemoryStorage::default();
    let items = |range: std::ops::Range<u32>| -> Vec<OwnedItem> {
        range.map(|number| OwnedItem::value(key(number), vec![1; 50])).collect()
    };
    let old = table(&storage, 10, SPEC, &items(100..300), Vec::new()).sections()[0].clone();
    let middle = table(&storage, 11, SPEC, &items(200..400), vec![old]).sections()[0].clone();
    let young = table(&storage, 12, SPEC, &items(300..500), vec![middle.clone()]).sections()[0].clone();
    assert_eq!(young.names_tables().unwrap(), Some(vec![TableId(12), TableId(11)]));
    let stack = [young, middle];
    assert!((300..500).all(|number| named(&stack, &key(number)) == [0]));
    assert!((200..300).all(|number| named(&stack, &key(number)) == [1]));
    let Asked::Runs(verdict) = stack[0].ask(HASHER.hash(&key(250))).unwrap() else {
        panic!("it is in memory")
    };
    assert_eq!(
        (verdict.says(1, TableId(10)), verdict.says(2, TableId(10))),
        (None, None),
        "of no other table does it tell"
    );
}
