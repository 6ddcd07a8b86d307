//! Tests of whole table files, compared with vectors of items.

mod buckets;
mod corruption;
mod covering;
mod dense;
mod format_document;
mod lookup;
mod memory_storage;
mod packing;
mod scan;
mod semi_sorted;

use alluvium_base::{HashRange, KeyHash, KeyHasher, KeyspaceId, TableId};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::HashFilter;
use alluvium_io::Storage;
use proptest::prelude::*;

use self::memory_storage::MemoryStorage;
use super::unsynced_table::TableInfo;
use super::{ITEM_BYTES_MAX, SectionSpec, SortedIndex, Table, TableWriter, pages_expected};
use crate::item::{EncodedItem, Item, ItemKind};

const NAME: &str = "000007.table";
/// Seed 0, on which [`colliding_key`] depends.
const HASHER: KeyHasher = KeyHasher::Xxh3 { seed: 0 };
const SPEC: SectionSpec =
    SectionSpec { keyspace: KeyspaceId(3), hasher: HASHER, range: HashRange::ALL, level: 0, plan_number: 0 };

/// An item that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OwnedItem {
    kind: ItemKind,
    flags: u32,
    expires_at_ms: Option<u64>,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl OwnedItem {
    fn value(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { kind: ItemKind::Value, flags: 0, expires_at_ms: None, key: key.into(), value: value.into() }
    }

    fn encoded<'a>(&self, encoding: &'a mut Vec<u8>) -> EncodedItem<'a> {
        encoding.clear();
        self.borrow().encode(encoding);
        EncodedItem::decode(encoding).expect("just encoded")
    }

    fn borrow(&self) -> Item<'_> {
        Item {
            kind: self.kind,
            flags: self.flags,
            expires_at_ms: self.expires_at_ms,
            key: &self.key,
            value: &self.value,
        }
    }

    fn hash(&self) -> KeyHash {
        HASHER.hash(&self.key)
    }
}

/// Fixed items: 16-byte keys, 100-byte values, 34 to a page.
fn fixed_items(count: u64) -> Vec<OwnedItem> {
    (0..count).map(|number| OwnedItem::value(format!("key {number:012}"), vec![number as u8; 100])).collect()
}

/// Items of distinct keys and of any size that fits in a page, some of them tombstones, flagged or expiring.
fn items_of_any_size(count_max: usize) -> impl Strategy<Value = Vec<OwnedItem>> {
    let key =
        prop_oneof![prop::collection::vec(any::<u8>(), 0..3), prop::collection::vec(any::<u8>(), 3..200)];
    let value_len = prop_oneof![3 => 0usize..150, 1 => 0usize..1800];
    let rest = (
        any::<u8>(),
        prop_oneof![9 => Just(0), 1 => any::<u32>()],
        prop_oneof![9 => Just(None), 1 => any::<Option<u64>>()],
    );
    prop::collection::btree_map(key, (value_len, rest), 0..count_max).prop_map(|items| {
        let item = |(key, (value_len, (byte, flags, expires_at_ms)))| {
            let kind = if byte < 20 { ItemKind::Tombstone } else { ItemKind::Value };
            let value = if kind == ItemKind::Tombstone { Vec::new() } else { vec![byte; value_len] };
            OwnedItem { kind, flags, expires_at_ms, key, value }
        };
        items.into_iter().map(item).collect()
    })
}

/// Keys that all have one 128-bit hash under [`HASHER`].
///
/// XXH3 of a long key multiplies, lane by lane, the two halves of data XOR secret, and adds the data to the adjacent
/// lane. If the low half equals the secret's, the product is zero, so only the sum of two such lanes counts.
fn colliding_key(number: u32) -> Vec<u8> {
    const SECRET: [u8; 16] =
        [0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c];
    let mut key = vec![b'c'; 256];
    key[..4].copy_from_slice(&SECRET[..4]);
    key[4..8].copy_from_slice(&number.to_le_bytes());
    key[64..68].copy_from_slice(&SECRET[8..12]);
    key[68..72].copy_from_slice(&(u32::MAX - number).to_le_bytes());
    key
}

/// The numbers of `items` by hash. A table of few buckets may be full early; then a larger one is made.
fn cuckoo_table(items: &[OwnedItem]) -> CuckooTable {
    let insert_all = |entries| {
        let cuckoo = CuckooTable::with_entries(entries);
        let mut items = items.iter().zip(0..);
        items.all(|(item, number)| cuckoo.insert(item.hash(), number).is_ok()).then_some(cuckoo)
    };
    (0..6)
        .find_map(|doublings| insert_all(items.len().max(1) << doublings))
        .expect("room in the cuckoo table")
}

/// Writes `items` as a section of hash layout.
fn write_hash_section(writer: &mut TableWriter, spec: SectionSpec, items: &[OwnedItem], tag_bits: u32) {
    let cuckoo = cuckoo_table(items);
    writer.begin_hash_section(spec, HashFilter::from_table(&cuckoo, tag_bits));
    let mut encoding = Vec::new();
    for (slot, _, number) in cuckoo.entries() {
        let item = &items[number as usize];
        writer.push_slot(slot, item.hash(), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// As wide as tags get.
const SLOT_PAGES: SortedIndex = SortedIndex::SlotPages { tag_bits: 15 };

/// Writes `items`, in any order, as a section of sorted layout.
fn write_sorted_section(
    writer: &mut TableWriter,
    spec: SectionSpec,
    items: &[OwnedItem],
    index: SortedIndex,
) {
    let items = sorted(items);
    let bytes = items.iter().map(|item| item.borrow().encoded_len() as u64).sum();
    writer.begin_sorted_section(spec, index, pages_expected(items.len() as u64, bytes));
    let mut encoding = Vec::new();
    for item in &items {
        writer.push(item.hash(), &item.encoded(&mut encoding)).unwrap();
    }
    writer.finish_section().unwrap();
}

/// In the order of sections of sorted layout.
fn sorted(items: &[OwnedItem]) -> Vec<OwnedItem> {
    let mut items = items.to_vec();
    items.sort_by(|one, other| (one.hash(), &one.key).cmp(&(other.hash(), &other.key)));
    items
}

/// Writes a table by `fill` and opens it.
fn table(storage: &dyn Storage, fill: impl FnOnce(&mut TableWriter)) -> (Table, TableInfo) {
    let mut writer = TableWriter::create(storage, NAME, TableId(7)).unwrap();
    fill(&mut writer);
    let info = writer.finish().unwrap().sync().unwrap();
    (Table::open(storage, NAME, &[]).unwrap(), info)
}

/// A small table of a section of hash layout, one of sorted layout for each index, one in buckets, and one with a
/// filter that could cover others.
fn small_table(storage: &MemoryStorage) -> (Table, Vec<OwnedItem>) {
    let items: Vec<_> = (0..40u8)
        .map(|number| OwnedItem {
            kind: if number % 7 == 0 { ItemKind::Tombstone } else { ItemKind::Value },
            flags: u32::from(number % 5),
            expires_at_ms: (number % 6 == 0).then_some(u64::from(number)),
            key: vec![number; usize::from(number % 9) + 1],
            value: if number % 7 == 0 { Vec::new() } else { vec![number; usize::from(number) * 6] },
        })
        .collect();
    let (table, _) = table(storage, |writer| {
        write_hash_section(writer, SPEC, &items, 15);
        write_sorted_section(writer, SPEC, &items, SortedIndex::FENCES);
        write_sorted_section(writer, SPEC, &items, SortedIndex::Trie);
        dense::write_section(writer, &items, Some(7));
        buckets::write_section(writer, &items);
        covering::write_section(writer, &items);
        write_sorted_section(writer, SPEC, &items, SLOT_PAGES);
    });
    (table, items)
}

#[test]
fn colliding_keys_collide() {
    assert_eq!(HASHER.hash(&colliding_key(1)), HASHER.hash(&colliding_key(77)));
    assert!(OwnedItem::value(colliding_key(1), vec![0; 1000]).borrow().encoded_len() < ITEM_BYTES_MAX);
}
