//! Chains of a region against a map: the newest version of each key is found, whatever was put, written anew or grown.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::{KeyHash, KeyHasher};
use alluvium_index::chain_region::{ChainRegion, Choice, Pointer, Slot, SlotShape};
use proptest::prelude::*;

const HASHER: KeyHasher = KeyHasher::Xxh3 { seed: 3 };

fn hash(key: u64) -> KeyHash {
    HASHER.hash(&key.to_le_bytes())
}

/// A log of records, each of which names the one before it in its chain, and the directory over it.
struct Store {
    region: ChainRegion,
    records: Vec<(u64, u64, Option<Pointer>)>,
    /// Number of records at each doubling.
    doubled_at: Vec<u64>,
    walked: u64,
}

impl Store {
    fn new(shape: SlotShape, len: usize) -> Self {
        Self { region: ChainRegion::new(shape, 0, len), records: Vec::new(), doubled_at: vec![], walked: 0 }
    }

    fn append(&mut self, key: u64, version: u64, next: Option<Pointer>) -> Pointer {
        self.records.push((key, version, next));
        Pointer(self.records.len() as u64)
    }

    /// Positions, keys and versions of a chain, young to old.
    fn chain(&self, head: Option<Pointer>) -> Vec<(Pointer, u64, u64)> {
        let mut found = Vec::new();
        let mut next = head;
        while let Some(pointer) = next {
            let (key, version, before) = self.records[pointer.0 as usize - 1];
            found.push((pointer, key, version));
            next = before;
        }
        found
    }

    fn find(&mut self, key: u64) -> Option<u64> {
        let chains: Vec<(Slot, Pointer)> = self.region.chains_of(hash(key)).collect();
        for (_, head) in chains {
            for (_, other, version) in self.chain(Some(head)) {
                self.walked += 1;
                if other == key {
                    return Some(version);
                }
            }
        }
        None
    }

    fn put(&mut self, key: u64, version: u64) -> bool {
        let has_it = |store: &Self, slot| {
            store.chain(store.region.head(slot)).iter().any(|&(_, other, _)| other == key)
        };
        let choice = self.region.choose(hash(key));
        let slot = match choice {
            Choice::Slot(slot) => slot,
            Choice::Walk(shorter, longer) => {
                if has_it(self, longer) {
                    longer
                } else {
                    shorter
                }
            }
        };
        let pointer = self.append(key, version, self.region.head(slot));
        self.region.push(slot, hash(key), pointer);
        matches!(choice, Choice::Walk(..))
    }

    /// Writes a chain anew: the newest version of each key that belongs there.
    fn relocate(&mut self, slot: Slot) {
        let mut seen = BTreeSet::new();
        let mut live = self.chain(self.region.head(slot));
        live.retain(|&(_, key, _)| {
            let (first, second) = self.region.slots_of(hash(key));
            (first == slot || second == Some(slot)) && seen.insert(key)
        });
        let mut head = None;
        for &(_, key, version) in live.iter().rev() {
            head = Some(self.append(key, version, head));
        }
        self.region.replace(slot, head, live.iter().map(|&(_, key, _)| hash(key)));
    }

    fn grow(&mut self) {
        self.doubled_at.push(self.records.len() as u64);
        self.region.grow();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64),
    Relocate(usize),
    Grow,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        40 => (0..60_u64).prop_map(Step::Put),
        6 => any::<usize>().prop_map(Step::Relocate),
        1 => Just(Step::Grow),
    ];
    prop::collection::vec(step, 0..300)
}

fn shapes() -> impl Strategy<Value = SlotShape> {
    (4..=5_usize, prop_oneof![Just(0), 1..12_usize])
        .prop_map(|(pointer_bytes, filter_bytes)| SlotShape { pointer_bytes, filter_bytes })
}

proptest! {
    #[test]
    fn the_newest_version_is_found(shape in shapes(), len in 1..5_usize, steps in steps()) {
        let mut store = Store::new(shape, 2 * len);
        let mut model = BTreeMap::new();
        for (version, step) in (0_u64..).zip(steps) {
            match step {
                Step::Put(key) => {
                    store.put(key, version);
                    model.insert(key, version);
                }
                Step::Relocate(slot) => {
                    // A shared chain can be relocated alone; records that others share stay where they are.
                    let slot = Slot(slot % store.region.len());
                    store.relocate(slot);
                }
                Step::Grow if store.region.len() < 200 => store.grow(),
                Step::Grow => {}
            }
        }
        for key in 0..70 {
            prop_assert_eq!(store.find(key), model.get(&key).copied(), "key {}", key);
        }
        // Each record that a chain reaches is reached from the sharers of its slot alone.
        for slot in (0..store.region.len()).map(Slot) {
            for (pointer, key, _) in store.chain(store.region.head(slot)) {
                let doublings = store.doubled_at.iter().filter(|&&at| at >= pointer.0).count() as u32;
                let (first, second) = store.region.slots_of(hash(key));
                let mut sharers = std::iter::once(first)
                    .chain(second)
                    .flat_map(|own| store.region.sharers(own, doublings));
                prop_assert!(sharers.any(|sharer| sharer == slot), "{:?} at {:?}", pointer, slot);
            }
        }
        let mut bytes = vec![7];
        store.region.write_to(&mut bytes);
        let (read, len) = ChainRegion::read_from(&bytes[1..], shape, 0).unwrap();
        prop_assert_eq!((read, len), (store.region.clone(), bytes.len() - 1));
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        prop_assert!(ChainRegion::read_from(&bytes[1..], shape, 0).is_err());
        prop_assert!(ChainRegion::read_from(&bytes[1..at], shape, 0).is_err());
    }
}

/// SkimpyStash §4.5 and Fig. 8, with ten keys a slot and 80 bits of filter. The fluid limit of the model has 5.55 reads
/// a hit, and filters that are wrong 0.1 to 0.2 more.
#[test]
fn ten_keys_a_slot_take_one_and_a_half_bytes_and_five_point_seven_reads() {
    const KEYS: u64 = 200_000;
    let shape = SlotShape { pointer_bytes: 4, filter_bytes: 10 };
    let mut store = Store::new(shape, KEYS as usize / 10);
    let walks = (0..KEYS).filter(|&key| store.put(key, 0)).count();
    assert!((walks as f64) < 0.02 * KEYS as f64, "{walks} puts of new keys walk");
    assert_eq!(store.region.memory_bytes() as f64 / KEYS as f64, 1.5);
    let lengths: Vec<f64> =
        (0..store.region.len()).map(|slot| store.chain(store.region.head(Slot(slot))).len() as f64).collect();
    let variance = lengths.iter().map(|length| (length - 10.0).powi(2)).sum::<f64>() / lengths.len() as f64;
    assert!(variance.sqrt() / 10.0 < 0.12, "deviation {}", variance.sqrt());
    store.walked = 0;
    (0..KEYS).for_each(|key| assert_eq!(store.find(key), Some(0)));
    let reads = store.walked as f64 / KEYS as f64;
    assert!((5.5..5.85).contains(&reads), "{reads} reads a hit");
    store.walked = 0;
    (KEYS..2 * KEYS).for_each(|key| assert_eq!(store.find(key), None));
    let reads = store.walked as f64 / KEYS as f64;
    assert!(reads < 0.6, "{reads} reads a miss");
    let updates = (0..KEYS).filter(|&key| store.put(key, 1)).count();
    assert!((updates as f64) < 0.05 * KEYS as f64, "{updates} updates walk");
}

#[test]
fn without_filters_a_key_has_one_chain() {
    const KEYS: u64 = 50_000;
    let mut store = Store::new(SlotShape { pointer_bytes: 5, filter_bytes: 0 }, KEYS as usize / 10);
    (0..KEYS).for_each(|key| assert!(!store.put(key, 0)));
    assert_eq!(store.region.memory_bytes() as f64 / KEYS as f64, 0.5);
    (0..KEYS).for_each(|key| assert_eq!(store.find(key), Some(0)));
    let reads = store.walked as f64 / KEYS as f64;
    assert!((5.9..6.1).contains(&reads), "{reads} reads a hit");
}
