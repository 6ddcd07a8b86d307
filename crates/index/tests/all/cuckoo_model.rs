//! The cuckoo table compared with an obviously correct model: a multiset of (hash, offset).

use std::collections::HashMap;

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::{CuckooTable, Full, Slot};
use proptest::prelude::*;

/// A hash with a chosen tag; its other bits are mixed from `id`.
fn hash(id: u32, tag: u16) -> KeyHash {
    let mixed = u64::from(id).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    KeyHash::from_halves(mixed, (mixed ^ mixed >> 31) & !0x7fff | u64::from(tag))
}

#[derive(Clone, Debug)]
enum Operation {
    Insert { id: u32, tag: u16, offset: u32 },
    Replace { pick: prop::sample::Index, offset: u32 },
    Remove { pick: prop::sample::Index },
}

fn operation() -> impl Strategy<Value = Operation> {
    // Few tags and few identities make equal tags, equal placements and duplicate hashes common.
    let tag = prop_oneof![0..4u16, 0x7ff0..0x8000u16, 0..0x8000u16];
    let id = prop_oneof![0..8u32, any::<u32>()];
    prop_oneof![
        6 => (id, tag, any::<u32>()).prop_map(|(id, tag, offset)| Operation::Insert { id, tag, offset }),
        1 => (any::<prop::sample::Index>(), any::<u32>())
            .prop_map(|(pick, offset)| Operation::Replace { pick, offset }),
        2 => any::<prop::sample::Index>().prop_map(|pick| Operation::Remove { pick }),
    ]
}

/// Checks that every entry of the model is found, and that table and model have the same offsets.
fn check(table: &CuckooTable, model: &HashMap<KeyHash, Vec<u32>>) -> Result<(), TestCaseError> {
    for (&hash, offsets) in model {
        let mut found: Vec<u32> = table.candidates(hash).map(|(_, offset)| offset).collect();
        for offset in offsets {
            let position = found.iter().position(|other| other == offset);
            prop_assert!(position.is_some(), "{hash:?} at {offset} is missed");
            found.swap_remove(position.unwrap());
        }
    }
    let mut expected: Vec<u32> = model.values().flatten().copied().collect();
    let mut entries: Vec<u32> = table.entries().map(|(_, _, offset)| offset).collect();
    expected.sort_unstable();
    entries.sort_unstable();
    prop_assert_eq!(&entries, &expected);
    prop_assert_eq!(table.len(), expected.len());
    prop_assert_eq!(table.is_empty(), expected.is_empty());
    let slots: Vec<u32> = table.entries().map(|(slot, _, _)| slot).collect();
    prop_assert!(slots.is_sorted_by(|a, b| a < b));
    prop_assert!(slots.iter().all(|&slot| (slot as usize) < table.slots()));
    Ok(())
}

/// The slot that contains (hash, offset).
fn slot_of(table: &CuckooTable, hash: KeyHash, offset: u32) -> Slot {
    table.candidates(hash).find(|&(_, found)| found == offset).expect("the entry is in the table").0
}

fn pick_of(model: &HashMap<KeyHash, Vec<u32>>, pick: &prop::sample::Index) -> Option<(KeyHash, u32)> {
    let mut all: Vec<(KeyHash, u32)> =
        model.iter().flat_map(|(&hash, offsets)| offsets.iter().map(move |&offset| (hash, offset))).collect();
    all.sort_unstable();
    (!all.is_empty()).then(|| *pick.get(&all))
}

fn take(model: &mut HashMap<KeyHash, Vec<u32>>, hash: KeyHash, offset: u32) {
    let offsets = model.get_mut(&hash).unwrap();
    offsets.swap_remove(offsets.iter().position(|&other| other == offset).unwrap());
    if offsets.is_empty() {
        model.remove(&hash);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn mixed_operations_agree_with_the_model(
        entries in 0usize..90,
        operations in prop::collection::vec(operation(), 1..160),
    ) {
        let table = CuckooTable::with_entries(entries);
        let mut model: HashMap<KeyHash, Vec<u32>> = HashMap::new();
        for operation in operations {
            match operation {
                Operation::Insert { id, tag, offset } => {
                    let hash = hash(id, tag);
                    let before = table.to_bytes();
                    match table.insert(hash, offset) {
                        Ok(()) => model.entry(hash).or_default().push(offset),
                        Err(Full) => prop_assert_eq!(table.to_bytes(), before, "a refused insertion changes nothing"),
                    }
                }
                Operation::Replace { pick, offset } => {
                    let Some((hash, old)) = pick_of(&model, &pick) else { continue };
                    // If entries have equal tags in the same pair of buckets, the slot found may belong to another key.
                    // It then stands for both, since the table does not distinguish equal (tag, buckets, offset).
                    table.replace(slot_of(&table, hash, old), hash, offset);
                    take(&mut model, hash, old);
                    model.entry(hash).or_default().push(offset);
                }
                Operation::Remove { pick } => {
                    let Some((hash, offset)) = pick_of(&model, &pick) else { continue };
                    table.remove(slot_of(&table, hash, offset));
                    take(&mut model, hash, offset);
                }
            }
            check(&table, &model)?;
        }
        let restored = CuckooTable::from_bytes(&table.to_bytes()).unwrap();
        check(&restored, &model)?;
        prop_assert!(restored.entries().eq(table.entries()));
    }

    #[test]
    fn no_key_is_missed_at_any_load(entries in 1usize..3000, seed: u32) {
        let table = CuckooTable::with_entries(entries);
        let mut hashes = Vec::new();
        for id in 0.. {
            let id = seed.wrapping_add(id);
            let hash = hash(id, (id.wrapping_mul(0x9e37_79b1) >> 17) as u16);
            if table.insert(hash, id).is_err() {
                break;
            }
            hashes.push((hash, id));
            if hashes.len().is_multiple_of(1 + entries / 20) {
                for &(hash, id) in &hashes {
                    prop_assert!(table.candidates(hash).any(|(_, offset)| offset == id));
                }
            }
        }
        for &(hash, id) in &hashes {
            prop_assert!(table.candidates(hash).any(|(_, offset)| offset == id));
        }
        prop_assert_eq!(table.len(), hashes.len());
    }

    #[test]
    fn a_batch_finds_what_single_lookups_find(entries in 1usize..500, count in 0usize..600) {
        let table = CuckooTable::with_entries(entries);
        for id in 0..entries as u32 {
            let _ = table.insert(hash(id, id as u16 & 0xff), id);
        }
        let hashes: Vec<KeyHash> = (0..count as u32).map(|id| hash(id, id as u16 & 0xff)).collect();
        let mut found = vec![Default::default(); count];
        table.candidates_batch(&hashes, &mut found);
        for (hash, found) in hashes.iter().zip(found) {
            prop_assert!(found.eq(table.candidates(*hash)));
        }
    }

    #[test]
    fn damaged_bytes_are_refused(entries in 1usize..60, position: prop::sample::Index, flip in 1u8..) {
        let table = CuckooTable::with_entries(entries);
        for id in 0..entries as u32 {
            let _ = table.insert(hash(id, id as u16), id);
        }
        let mut bytes = table.to_bytes();
        let cut = position.index(bytes.len());
        prop_assert!(CuckooTable::from_bytes(&bytes[..cut]).is_err());
        bytes[cut] ^= flip;
        prop_assert!(CuckooTable::from_bytes(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        prop_assert!(CuckooTable::from_bytes(&bytes).is_err());
    }
}

/// Bytes with a correct checksum but wrong content, as a hostile writer would make them.
#[test]
fn resealed_nonsense_is_refused() {
    let table = CuckooTable::with_entries(10);
    table.insert(hash(1, 1), 1).unwrap();
    let sound = table.to_bytes();
    let forged = |position: usize, value: u8| {
        let mut bytes = sound.clone();
        bytes[position] = value;
        let body = bytes.len() - 8;
        let checksum = alluvium_base::checksum::checksum64(&bytes[..body], 0);
        bytes[body..].copy_from_slice(&checksum.to_le_bytes());
        CuckooTable::from_bytes(&bytes)
    };
    assert!(forged(0, b'A').is_ok());
    let offset_of = |position, value| forged(position, value).unwrap_err().offset;
    assert_eq!(offset_of(0, b'x'), 0, "magic");
    assert_eq!(offset_of(8, 2), 8, "version");
    assert_eq!(offset_of(12, 14), 12, "tag bits");
    assert_eq!(offset_of(16, 0), 16, "no bucket");
    assert_eq!(offset_of(19, 0xff), 16, "too many buckets");
    assert_eq!(offset_of(16, 4), 16, "length");
    assert_eq!(offset_of(20, 2), 20, "count");
    assert_eq!(offset_of(23, 0x80), 20, "more entries than slots");
    assert_eq!(offset_of(24 + 8 + 1, 0x80), 24 + 8, "a tag of 16 bits");
}

#[test]
fn the_ninth_equal_hash_is_refused_and_room_comes_back() {
    let table = CuckooTable::with_entries(1000);
    let twin = hash(5, 77);
    let accepted = (0..20).take_while(|&offset| table.insert(twin, offset).is_ok()).count();
    assert_eq!(accepted, 8);
    let slot = table.candidates(twin).next().unwrap().0;
    table.remove(slot);
    table.remove(slot);
    assert_eq!(table.len(), 7);
    assert_eq!(table.insert(twin, 99), Ok(()));
    assert_eq!(table.candidates(twin).count(), 8);
}

#[test]
fn odd_sizes_reach_95_percent() {
    for entries in [4_000usize, 9_973, 16_384, 32_771, 200_003] {
        let table = CuckooTable::with_entries(entries);
        for id in 0..entries as u32 {
            let mixed = u64::from(id).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ entries as u64;
            let low = (mixed ^ mixed >> 29).wrapping_mul(0x94d0_49bb_1331_11eb);
            assert_eq!(
                table.insert(KeyHash::from_halves(0, low ^ low >> 32), id),
                Ok(()),
                "{entries} entries"
            );
        }
        assert!(table.occupancy() > 0.949);
        assert!(table.memory_bytes() as f64 <= 6.07 * table.slots() as f64);
    }
}
