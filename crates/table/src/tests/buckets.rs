//! Tables in buckets: every item is found and scanned, whatever its size, and filters answer for the tables below.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, TableId};
use alluvium_io::AlignedBuffer;
use proptest::prelude::*;

use super::memory_storage::MemoryStorage;
use super::{NAME, OwnedItem, SPEC, colliding_key, fixed_items, items_of_any_size, sorted};
use crate::{
    Asked, BucketFilter, ClusterSpec, Head, PageList, Section, SectionRange, SectionScanner, Table,
    TableWriter,
};

fn spec(on_flash: bool, below: Vec<Arc<Section>>) -> ClusterSpec {
    let head = |section: Arc<Section>| {
        let tables = section.clustered().unwrap().map_or(1, |(files, _)| files.len());
        Head { section, tables }
    };
    ClusterSpec {
        bits_per_key: 16,
        column_items: 8,
        on_flash,
        below: below.into_iter().map(head).collect(),
        like: None,
    }
}

impl From<ClusterSpec> for BucketFilter {
    fn from(spec: ClusterSpec) -> Self {
        Self::Clustered(spec)
    }
}

fn write(writer: &mut TableWriter, items: &[OwnedItem], filter: BucketFilter) {
    writer.begin_bucketed_section(SPEC, filter, items.len() as u64);
    let mut encoding = Vec::new();
    for item in &sorted(items) {
        writer.push(item.hash(), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// Writes `items`, in any order, as a section in buckets.
pub(super) fn write_section(writer: &mut TableWriter, items: &[OwnedItem]) {
    write(writer, items, spec(false, Vec::new()).into());
}

/// A table of file `number`.
fn table(
    storage: &MemoryStorage,
    number: u64,
    items: &[OwnedItem],
    filter: impl Into<BucketFilter>,
) -> Table {
    let name = if number == 7 { NAME.to_owned() } else { format!("{number:06}.table") };
    let mut writer = TableWriter::create(storage, &name, TableId(number)).unwrap();
    write(&mut writer, items, filter.into());
    writer.finish().unwrap().sync().unwrap();
    Table::open(storage, &name, &[]).unwrap()
}

fn scanned(mut scanner: SectionScanner) -> Vec<(KeyHash, OwnedItem)> {
    let mut items = Vec::new();
    while let Some((hash, item)) = scanner.next().unwrap() {
        let (kind, flags, expires_at_ms) = (item.kind, item.flags, item.expires_at_ms);
        let (key, value) = (item.key.to_vec(), item.value.to_vec());
        items.push((hash, OwnedItem { kind, flags, expires_at_ms, key, value }));
    }
    items
}

fn with_hashes(items: &[OwnedItem]) -> Vec<(KeyHash, OwnedItem)> {
    sorted(items).into_iter().map(|item| (item.hash(), item)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_item_is_found_and_scanned(
        items in items_of_any_size(400),
        collisions in 0u32..20,
        filter in prop_oneof![
            any::<bool>().prop_map(|on_flash| BucketFilter::Clustered(spec(on_flash, Vec::new()))),
            (1u32..=16).prop_map(|bits| BucketFilter::Static { bits }),
        ],
        read_pages in 1usize..5,
        cut: (u64, u64),
    ) {
        let mut items = items;
        items.extend((0..collisions).map(|number| OwnedItem::value(colliding_key(number), vec![0; 900])));
        let storage = MemoryStorage::default();
        let table = table(&storage, 7, &items, filter);
        let section = &table.sections()[0];
        let mut buffer = AlignedBuffer::new();
        for item in &items {
            let found = section.get(item.hash(), &item.key, &mut buffer).unwrap();
            prop_assert_eq!(found, Some(item.borrow()));
        }
        prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
        let expected = with_hashes(&items);
        let scanner = SectionScanner::with_read_bytes(Arc::clone(section), 0, read_pages * 4096);
        prop_assert_eq!(&scanned(scanner), &expected);
        let (low, high) = (cut.0.min(cut.1), cut.0.max(cut.1));
        let range = HashRange::new(u128::from(low) << 64, u128::from(high) << 64 | u128::from(u64::MAX));
        let range = SectionRange { section: Arc::clone(section), range };
        let within: Vec<_> =
            expected.into_iter().filter(|(hash, _)| (low..=high).contains(&hash.high())).collect();
        let ranges = SectionScanner::chain_ranges(&storage, &[range], read_pages * 4096).unwrap();
        prop_assert_eq!(scanned(ranges), within);
    }

    /// A stack of tables, each above those before. Compares with which of them were given the key.
    #[test]
    fn a_filter_answers_for_the_tables_below(
        sizes in prop::collection::vec(1u64..200, 1..12),
        gathers in prop::collection::vec(any::<bool>(), 12),
        dropped: bool,
    ) {
        let storage = MemoryStorage::default();
        let mut tables: Vec<(Table, Vec<OwnedItem>)> = Vec::new();
        for (number, (&size, &on_flash)) in sizes.iter().zip(&gathers).enumerate() {
            let items: Vec<_> = (0..size)
                .map(|key| OwnedItem::value((key * (number as u64 + 1)).to_le_bytes(), [number as u8; 9]))
                .collect();
            // Heads of the tables below, young to old.
            let mut below = Vec::new();
            let mut next = tables.len();
            while next > 0 {
                let section = tables[next - 1].0.sections()[0].clone();
                next -= section.clustered().unwrap().unwrap().0.len();
                below.push(section);
            }
            if on_flash {
                below.truncate(1);
            }
            tables.push((table(&storage, 10 + number as u64, &items, spec(on_flash, below)), items));
        }
        if dropped {
            tables.iter().for_each(|(table, _)| {
                table.load_indexes(table.sections()).unwrap();
                table.sections()[0].set_covered();
            });
        }
        for (top, (table, _)) in tables.iter().enumerate() {
            prop_assert_eq!(table.verify(|_| true).unwrap().corruptions, []);
            let section = &table.sections()[0];
            let (files, _) = section.clustered().unwrap().unwrap();
            for key in 0..300u64 {
                let hash = super::HASHER.hash(&key.to_le_bytes());
                let verdict = match section.ask(hash).unwrap() {
                    Asked::Runs(verdict) => verdict,
                    Asked::Pages(pages) => {
                        prop_assert!(files.len() == 1 && pages != PageList::EMPTY);
                        continue;
                    }
                    Asked::Column(column) => {
                        let mut bytes = vec![0; column.read.count as usize * 4096];
                        section.file().read_at(&mut bytes, section.page_offset(column.read.page)).unwrap();
                        section.judge(column, &bytes, hash).unwrap()
                    }
                };
                for (depth, &file) in files.iter().enumerate() {
                    let (_, items) = &tables[top - depth];
                    prop_assert_eq!(file, TableId(10 + (top - depth) as u64));
                    let has_it = items.iter().any(|item| item.key == key.to_le_bytes());
                    prop_assert!(verdict.says(depth, file) == Some(true) || !has_it);
                }
                prop_assert!(files.len() == 1 || verdict.says(1, TableId(99)).is_none(), "another file");
                prop_assert_eq!(verdict.says(files.len(), TableId(10)), None);
            }
        }
    }
}

/// Each table is a quarter larger than the one below it, as where data grow; one in four has its filter in memory.
#[test]
fn one_column_answers_for_tables_that_grow() {
    let storage = MemoryStorage::default();
    let mut tables: Vec<Table> = Vec::new();
    let mut size = 200.0;
    for number in 0..16_u64 {
        let items: Vec<_> = (0..size as u64)
            .map(|key| OwnedItem::value((key << 8 | number).to_le_bytes(), [number as u8; 9]))
            .collect();
        let below = tables.iter().rev().map(|table| table.sections()[0].clone());
        let mut filter = spec(true, Vec::new());
        if number % 4 == 3 {
            (filter.on_flash, filter.like) = (false, below.clone().next());
        } else {
            // The one in memory, and the one on flash that answers for all others.
            filter = spec(true, below.take(1 + usize::from(number > 0 && number % 4 == 0)).collect());
        }
        tables.push(table(&storage, 10 + number, &items, filter));
        size *= 1.25;
    }
    let (files, on_flash) = tables[14].sections()[0].clustered().unwrap().unwrap();
    assert_eq!((files.len(), on_flash), (15, true));
    let Ok(Asked::Column(column)) = tables[14].sections()[0].ask(KeyHash::from_halves(1 << 60, 0)) else {
        panic!("no column is read");
    };
    assert_eq!(column.read.count, 1);
}

/// Otherwise a limit would seem to be exhausted by filters that are not in memory.
#[test]
fn filters_that_stay_elsewhere_want_no_memory() {
    let storage = MemoryStorage::default();
    let items = fixed_items(30_000);
    let filter_bytes = 2 * items.len() as u64;
    let wanted = |table: &Table| table.sections()[0].index_bytes_wanted();
    for on_flash in [true, false] {
        let table = table(&storage, 7 + u64::from(on_flash), &items, spec(on_flash, Vec::new()));
        assert_eq!(wanted(&table) >= filter_bytes, !on_flash, "{} bytes", wanted(&table));
        table.load_indexes(table.sections()).unwrap();
        assert_eq!(wanted(&table) >= filter_bytes, !on_flash, "{} bytes", wanted(&table));
        // A younger table's filter answers for it.
        table.sections()[0].set_covered();
        table.sections()[0].drop_index();
        assert!(wanted(&table) < filter_bytes, "{} bytes", wanted(&table));
    }
}

#[test]
fn buckets_are_97_percent_full() {
    let storage = MemoryStorage::default();
    let items = fixed_items(30_000);
    let table = table(&storage, 7, &items, spec(false, Vec::new()));
    let section = &table.sections()[0];
    let full = section.used_bytes() as f64 / section.pages_bytes() as f64;
    assert!((0.96..0.98).contains(&full), "{full}");
    let elsewhere = items.iter().filter(|item| {
        let pages = section.locate(item.hash()).unwrap();
        let mut bytes = AlignedBuffer::zeroed(4096);
        let read = pages.iter().next().unwrap();
        section.read_pages(read.page, 1, &mut bytes).unwrap();
        !matches!(section.search(read, &mut bytes, item.hash(), &item.key).unwrap(), crate::Searched::Item(_))
    });
    let reads = 1.0 + elsewhere.count() as f64 / items.len() as f64;
    assert!(reads <= 1.01, "{reads} reads");
}
