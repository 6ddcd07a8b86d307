//! Items that are set often, in memory beside the file (Wu's thesis, §5.2.4).
//!
//! ```text
//!  bucket ──► set of 8 slots   [ whose ×8 ] [ item ][ item ] …        in memory
//! ```
//!
//! A key that was set three times while its mark was remembered is hot. Its item is in a slot then, and its descriptor
//! in the file has been removed and flushed, so a crash loses the item rather than bringing an older one back. Further
//! sets write over the slot and flush nothing, and a removal flushes nothing. When another hot key needs the slot, the
//! item that was set least moves to the file, as if it were set there.
//!
//! The thesis has a list of recent marks and a cache of hot items, ordered by use. Here both are divided into sets, in
//! which the order is kept; a mark takes four bytes. The eviction of a general cache could not move an item to the file
//! within a change of the item's bucket, on which readers rely:
//!
//! Architecture invariant: a key has its item in one place, the file or a slot. All its writes hold the partition's
//! lock. It comes to a slot within one change of its bucket, which also removes its descriptor; it goes to the file
//! before it leaves the slot, which is another change. So a reader that looks at the slot, then at the file, and finds
//! the version of the bucket unchanged has seen the item or its absence.

use std::io;
use std::ops::Range;

use crate::memory::{PAGE_BYTES, Pages, Ring, UNIT_BYTES};
use crate::sync::{AtomicU64, Ordering};

use super::descriptor::UNIT;
use super::part::Sought;
use super::stored_item::{OVERHEAD_BYTES, StoredItem};

/// Slots of a set.
const WAYS: usize = 8;
/// How often a key is set before it is hot.
const HOT: u32 = 3;
/// Remembered marks for each slot.
const MARKS: usize = 4;
/// Highest count of sets of an item in a slot.
const USES_MAX: u8 = 7;
/// Bytes of a slot besides its item: whose it is, its count, and marks.
const BESIDE_BYTES: usize = size_of::<u64>() + 1 + MARKS * size_of::<u32>();

/// Sizes of a partition's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Sets of slots.
    pub sets: usize,
    /// Units of the largest item that it takes.
    pub slot_units: usize,
}

impl Shape {
    /// The shape for `bytes` bytes and items of `payload` bytes of key and value on average; `None` if they are too
    /// few. A slot has room for half as much again.
    pub fn within(bytes: usize, payload: usize) -> Option<Self> {
        let item_bytes = payload.checked_add(OVERHEAD_BYTES)?;
        let slot_units = item_bytes.checked_add(item_bytes / 2)?.div_ceil(UNIT);
        let mut sets = bytes / (WAYS * (slot_units * UNIT + BESIDE_BYTES));
        while sets > 0 && (Self { sets, slot_units }).bytes() > bytes {
            sets -= 1;
        }
        (sets > 0).then_some(Self { sets, slot_units })
    }

    /// The same with slots of at most this many units: no item of the file has more.
    pub fn with_items_of(self, units_max: usize) -> Self {
        Self { slot_units: self.slot_units.min(units_max), ..self }
    }

    /// Bytes that a write cache takes.
    pub fn bytes(self) -> usize {
        self.ring_bytes() + (self.sets * WAYS * BESIDE_BYTES).next_multiple_of(PAGE_BYTES)
    }

    fn ring_bytes(self) -> usize {
        (self.sets * WAYS * self.slot_units * UNIT).next_multiple_of(PAGE_BYTES)
    }
}

/// See the module. Readers copy items out beside the writer and validate by the version of the bucket.
#[derive(Debug)]
pub(crate) struct WriteCache {
    shape: Shape,
    items: Ring,
    /// By slot: the [`Whose`] of its item, or zero.
    whose: Box<[AtomicU64]>,
}

/// Whose item a slot has, and how long it is: the units in 16 bits, the tag in 16, and the low bits of the bucket's
/// number. The key decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Whose(u64);

impl Whose {
    fn new(sought: Sought<'_>, units: usize) -> Self {
        Self((sought.bucket as u64) << 32 | u64::from(sought.tag) << 16 | units as u64)
    }

    fn units(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    fn is_of(self, bucket: usize) -> bool {
        self.0 != 0 && (self.0 >> 32) as u32 == bucket as u32
    }

    fn may_be_of(self, sought: Sought<'_>) -> bool {
        self.0 != 0 && self.0 >> 16 == Self::new(sought, 0).0 >> 16
    }
}

impl WriteCache {
    /// # Errors
    /// The system's error if it refuses memory.
    pub fn new(shape: Shape) -> io::Result<Self> {
        Ok(Self {
            shape,
            items: Ring::new(shape.ring_bytes(), 0, Pages::Huge)?,
            whose: (0..shape.sets * WAYS).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// The slots for keys of a bucket.
    fn set_of(&self, bucket: usize) -> Range<usize> {
        let first = bucket % self.shape.sets * WAYS;
        first..first + WAYS
    }

    /// The slots with items of a bucket.
    pub fn slots_of(&self, bucket: usize) -> impl Iterator<Item = usize> {
        self.set_of(bucket).filter(move |&slot| self.whose(slot).is_of(bucket))
    }

    /// The slots.
    pub fn all(&self) -> Range<usize> {
        0..self.whose.len()
    }

    /// Whether an item of this size fits in a slot.
    pub fn has_room(&self, units: usize) -> bool {
        units <= self.shape.slot_units
    }

    /// The bytes of its slots and what is beside them.
    pub fn bytes(&self) -> usize {
        self.shape.bytes()
    }

    fn whose(&self, slot: usize) -> Whose {
        Whose(self.whose[slot].load(Ordering::Relaxed))
    }

    fn at(&self, slot: usize) -> usize {
        slot * self.shape.slot_units * UNIT
    }

    /// Bytes of the item in a slot, 0 if there is none.
    pub fn item_bytes(&self, slot: usize) -> usize {
        self.whose(slot).units().min(self.shape.slot_units) * UNIT
    }

    /// Copies the item of a slot out, which had `out.len()` bytes.
    pub fn copy_out(&self, slot: usize, out: &mut [u8]) {
        self.items.copy_out(self.at(slot), out);
    }

    /// The slots that may have the item of `key`.
    pub fn candidates(&self, sought: Sought<'_>) -> impl Iterator<Item = usize> {
        self.set_of(sought.bucket).filter(move |&slot| self.whose(slot).may_be_of(sought))
    }

    /// Writer: the slot of the item of `key`; `bytes` has the item then.
    pub fn find(&self, sought: Sought<'_>, bytes: &mut Vec<u8>) -> Option<usize> {
        self.candidates(sought).find(|&slot| {
            self.take_copy(slot, bytes);
            StoredItem::parse(bytes).is_some_and(|item| item.key == sought.key)
        })
    }

    /// Writer: replaces `bytes` by the item of a slot.
    pub fn take_copy(&self, slot: usize, bytes: &mut Vec<u8>) {
        bytes.resize(self.item_bytes(slot), 0);
        self.copy_out(slot, bytes);
    }

    /// Writer, within a change of the key's bucket: gives a slot an item as it is stored.
    pub fn fill(&self, slot: usize, sought: Sought<'_>, bytes: &[u8]) {
        debug_assert!(bytes.len().is_multiple_of(UNIT_BYTES) && self.has_room(bytes.len() / UNIT));
        self.items.copy_in(self.at(slot), bytes);
        self.whose[slot].store(Whose::new(sought, bytes.len() / UNIT).0, Ordering::Relaxed);
    }

    /// Writer, within a change of the bucket of the slot's key: makes a slot empty.
    pub fn empty(&self, slot: usize) {
        self.whose[slot].store(0, Ordering::Relaxed);
    }
}

/// What the writer of a partition remembers of sets, if it has a write cache.
#[derive(Debug, Default)]
pub(crate) struct Popularity {
    /// By set of slots: marks of keys with their counts, the last one first.
    recent: Vec<[u32; WAYS * MARKS]>,
    /// By slot: how often its item was set, less whenever others wanted it.
    uses: Vec<u8>,
}

impl Popularity {
    pub fn new(shape: Shape) -> Self {
        Self { recent: vec![[0; WAYS * MARKS]; shape.sets], uses: vec![0; shape.sets * WAYS] }
    }

    /// Counts a set of a key; returns whether the key is hot.
    pub fn count(&mut self, sought: Sought<'_>) -> bool {
        const COUNT_BITS: u32 = 2;
        let sets = self.recent.len();
        let Some(recent) = self.recent.get_mut(sought.bucket % sets.max(1)) else { return false };
        // Buckets of the same set differ in this quotient.
        let mark = (sought.bucket / sets) as u32 & 0x3fff | u32::from(sought.tag) << 14;
        let found = recent.iter().position(|entry| entry >> COUNT_BITS == mark && *entry != 0);
        let count = found.map_or(0, |at| recent[at] & ((1 << COUNT_BITS) - 1));
        let count = (count + 1).min(HOT);
        recent[..=found.unwrap_or(WAYS * MARKS - 1)].rotate_right(1);
        recent[0] = mark << COUNT_BITS | count;
        count == HOT
    }

    /// Counts a set of the item in a slot.
    pub fn count_use(&mut self, slot: usize) {
        self.uses[slot] = (self.uses[slot] + 1).min(USES_MAX);
    }

    /// Notes that a slot has another item.
    pub fn begin_use(&mut self, slot: usize) {
        self.uses[slot] = HOT as u8;
    }

    /// The slot for another item of the set of `sought`: an empty one, or that of the item that was set least.
    pub fn victim(&mut self, cache: &WriteCache, sought: Sought<'_>) -> usize {
        let slots = cache.set_of(sought.bucket);
        if let Some(empty) = slots.clone().find(|&slot| cache.item_bytes(slot) == 0) {
            return empty;
        }
        let victim = slots.clone().min_by_key(|&slot| self.uses[slot]).unwrap_or(slots.start);
        self.uses[slots].iter_mut().for_each(|uses| *uses = uses.saturating_sub(1));
        victim
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use alluvium_base::KeyHasher;
    use alluvium_io::SystemClock;

    use super::*;
    use crate::durable::core::{Core, Start, format};
    use crate::durable::descriptor::VERSION_BITS;
    use crate::durable::geometry::Geometry;
    use crate::durable::medium::{Medium, Mistake};
    use crate::durable::shared::Shared;
    use crate::durable::simulated::SimulatedMedium;
    use crate::item::Metadata;

    const GEOMETRY: Geometry = Geometry {
        partitions: 1,
        zones: 8,
        zone_bytes: 1 << 16,
        buckets: 16,
        dictionaries: 0,
        version_bits: VERSION_BITS,
    };

    fn core(mistake: Option<Mistake>) -> Core<SimulatedMedium> {
        let medium = SimulatedMedium::new(GEOMETRY.file_bytes(), mistake);
        format(&medium, &GEOMETRY);
        let shared = Shared {
            medium,
            geometry: GEOMETRY,
            hasher: KeyHasher::Xxh3 { seed: 3 },
            clock: Arc::new(SystemClock::default()),
            latest_ms: AtomicU64::new(0),
            packing: None,
            write_cache: Some(Shape { sets: 1, slot_units: 4 }),
            number: u64::MAX,
        };
        Core::open(shared, Start::New).unwrap()
    }

    fn set(core: &Core<SimulatedMedium>, key: &[u8], value: &[u8]) {
        let part = &core.parts[0];
        part.set(part.sought(core.shared.hash(key), key), value, Metadata::default()).unwrap();
    }

    fn get(core: &Core<SimulatedMedium>, key: &[u8]) -> Option<Vec<u8>> {
        let part = &core.parts[0];
        part.get_with(part.sought(core.shared.hash(key), key), |value, _| value.to_vec())
    }

    #[test]
    fn hot_items_flush_nothing_until_they_cool() {
        let core = core(None);
        let part = &core.parts[0];
        for round in 0..10_u8 {
            let before = core.shared.medium.flushes();
            set(&core, b"key", &[round; 20]);
            assert_eq!(get(&core, b"key"), Some(vec![round; 20]));
            // The first set finds no item, the third one removes the one in the file.
            let flushed = core.shared.medium.flushes() - before;
            assert_eq!(flushed, u64::from((1..=2).contains(&round)), "set {round}");
        }
        // An item that fits in no slot goes to the file, and stays there.
        set(&core, b"key", &[1; 100]);
        assert_eq!(get(&core, b"key"), Some(vec![1; 100]));
        set(&core, b"key", b"short");
        part.cool_all();
        assert_eq!(get(&core, b"key").as_deref(), Some(&b"short"[..]));
        assert_eq!(part.counters.cooled.load(Ordering::Relaxed), 1);
        // A removal of a hot key flushes nothing, and leaves nothing.
        (0..3).for_each(|_| set(&core, b"other", b"1"));
        let before = core.shared.medium.flushes();
        let sought = part.sought(core.shared.hash(b"other"), b"other");
        assert!(part.remove(sought) && !part.remove(sought));
        assert_eq!((get(&core, b"other"), core.shared.medium.flushes()), (None, before));
        set(&core, b"other", b"2");
        part.clear();
        assert_eq!((get(&core, b"other"), get(&core, b"key")), (None, None));
        assert!(part.beside.iter().all(|beside| beside.hot() == 0));
    }

    /// Two writers make keys hot in turn, so that they push one another out of the slots, while a reader looks for
    /// them. Returns how often it missed one; values go up.
    fn misses(mistake: Option<Mistake>) -> u64 {
        const KEYS: u64 = 24;
        let (core, is_done, keys) = (core(mistake), AtomicBool::new(false), KEYS);
        let key = |number: u64| format!("key {number}").into_bytes();
        (0..keys).for_each(|number| set(&core, &key(number), &0_u64.to_le_bytes()));
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    let core = &core;
                    scope.spawn(move || {
                        for round in 1..400_u64 {
                            for number in (writer..keys).step_by(2) {
                                (0..2).for_each(|_| set(core, &key(number), &round.to_le_bytes()));
                            }
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(|| {
                let mut seen = [0; KEYS as usize];
                let mut misses = 0;
                while !is_done.load(Ordering::Relaxed) {
                    for (number, seen) in seen.iter_mut().enumerate() {
                        let Some(value) = get(&core, &key(number as u64)) else {
                            misses += 1;
                            continue;
                        };
                        let value = u64::from_le_bytes(*value.first_chunk().unwrap());
                        assert!(value >= *seen, "an older item: {value} after {seen}");
                        *seen = value;
                    }
                }
                misses
            });
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            is_done.store(true, Ordering::Relaxed);
            let misses = reader.join().unwrap();
            assert!(core.parts[0].counters.cooled.load(Ordering::Relaxed) > 100);
            misses
        })
    }

    #[test]
    fn items_are_there_while_they_come_and_go() {
        assert_eq!(misses(None), 0);
        assert!((0..50).any(|_| misses(Some(Mistake::CooledEarly)) > 0), "the mistake was not noticed");
    }

    #[test]
    fn shapes_keep_to_their_bytes() {
        for bytes in [0, 1 << 12, 1 << 16, 1 << 20, 12_345_678] {
            for payload in [1, 100, 1000, 100_000] {
                let Some(shape) = Shape::within(bytes, payload) else { continue };
                assert!(shape.bytes() <= bytes && shape.slot_units * UNIT >= payload + OVERHEAD_BYTES);
            }
        }
        assert!(Shape::within(8 << 20, 116).is_some_and(|shape| shape.bytes() > 7 << 20));
        assert_eq!(Shape::within(1 << 20, usize::MAX), None);
    }
}
