//! Random operations on a buffer in front of an index, compared with a map: no answer is stale, whether or not the
//! buffer is bypassed meanwhile. And what calibrations decide.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use alluvium_index::slb::{Buffer, Calibration, Config, Lookup, Reader, Reference};
use proptest::prelude::*;

/// A clock that only its holders advance.
#[derive(Clone, Debug, Default)]
struct Hand(Rc<Cell<u64>>);

impl Hand {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }

    fn turn(&self, ns: u64) {
        self.0.set(self.0.get() + ns);
    }
}

/// Items in slots. A removed item's bytes stay in its slot until that is reused, so that only the buffer can know that
/// they are no longer an item.
#[derive(Debug, Default)]
struct Slots {
    items: RefCell<Vec<(u16, u64)>>,
    places: RefCell<HashMap<u16, u32>>,
    free: RefCell<Vec<u32>>,
    clock: Hand,
    search_ns: Cell<u64>,
    resolve_ns: Cell<u64>,
    has_good_hashes: bool,
}

impl Slots {
    fn put(&self, key: u16, value: u64) -> u32 {
        let mut items = self.items.borrow_mut();
        let slot = self.free.borrow_mut().pop().unwrap_or(items.len() as u32);
        if slot as usize == items.len() {
            items.push((0, 0));
        }
        items[slot as usize] = (key, value);
        if let Some(old) = self.places.borrow_mut().insert(key, slot) {
            self.free.borrow_mut().insert(0, old);
        }
        slot
    }

    fn remove(&self, key: u16) -> bool {
        let old = self.places.borrow_mut().remove(&key);
        self.free.borrow_mut().extend(old);
        old.is_some()
    }
}

impl Lookup for Slots {
    type Key = u16;
    type Item<'a> = u64;

    /// Usually few bits, so that keys share lines and tags.
    fn hash(&self, key: &u16) -> u64 {
        if self.has_good_hashes {
            return u64::from(*key % 4) << 62 | u64::from(*key) << 20 | u64::from(*key + 1);
        }
        u64::from(*key % 3) << 62 | u64::from(*key) << 20 | u64::from(*key % 5)
    }

    fn search(&self, key: &u16) -> Option<(Reference, u64)> {
        self.clock.turn(self.search_ns.get());
        let slot = *self.places.borrow().get(key)?;
        Some((slot.into(), self.items.borrow()[slot as usize].1))
    }

    fn resolve(&self, key: &u16, reference: Reference) -> Option<u64> {
        self.clock.turn(self.resolve_ns.get());
        let (found, value) = *self.items.borrow().get(reference.number() as usize)?;
        (found == *key).then_some(value)
    }
}

const SMALL: Config = Config { cache_bytes: 2 * 64, log_bytes: 64 };

/// Calibrates for lookups that take these times in the index and in the buffer.
fn calibrate(
    buffer: &mut Buffer<Slots>,
    (search_ns, resolve_ns): (u64, u64),
    keys: impl IntoIterator<Item = u16>,
    keys_per_call: usize,
) -> Calibration {
    buffer.index().search_ns.set(search_ns);
    buffer.index().resolve_ns.set(resolve_ns);
    let clock = buffer.index().clock.clone();
    buffer.calibrate_with(keys, keys_per_call, || clock.now_ns())
}

#[derive(Clone, Debug)]
enum Operation {
    Get(u16),
    GetEach(Vec<u16>),
    Put(u16),
    PutUntold(u16),
    Remove(u16),
    Calibrate(u64, u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..24_u16;
    prop_oneof![
        8 => key.clone().prop_map(Operation::Get),
        2 => prop::collection::vec(key.clone(), 0..40).prop_map(Operation::GetEach),
        2 => key.clone().prop_map(Operation::Put),
        1 => key.clone().prop_map(Operation::PutUntold),
        2 => key.prop_map(Operation::Remove),
        1 => (1..9_u64, 1..9_u64).prop_map(|(search, resolve)| Operation::Calibrate(search, resolve)),
    ]
}

/// Puts report the new position, report nothing, or remove.
fn mutate(index: &Slots, operation: &Operation, stamp: u64) -> (Option<Reference>, bool) {
    match *operation {
        Operation::Put(key) => (Some(index.put(key, stamp).into()), true),
        Operation::PutUntold(key) => {
            index.put(key, stamp);
            (None, true)
        }
        Operation::Remove(key) => (None, index.remove(key)),
        _ => (None, false),
    }
}

fn change_map(map: &mut HashMap<u16, u64>, operation: &Operation, stamp: u64) -> bool {
    match operation {
        Operation::Put(key) | Operation::PutUntold(key) => {
            map.insert(*key, stamp);
            true
        }
        Operation::Remove(key) => map.remove(key).is_some(),
        _ => false,
    }
}

/// Each key with its value in the map.
fn looked_up(map: &HashMap<u16, u64>, keys: &[u16]) -> Vec<(u16, Option<u64>)> {
    keys.iter().map(|key| (*key, map.get(key).copied())).collect()
}

proptest! {
    #[test]
    fn two_readers_of_two_buffers_agree_with_maps(
        operations in prop::collection::vec((operation(), 0..2_usize, 0..2_usize), 1..600),
    ) {
        let mut buffers = [(); 2].map(|()| Buffer::new(Slots::default(), SMALL));
        let mut readers = [Reader::with_seed(7), Reader::with_seed(8)];
        let mut maps: [HashMap<u16, u64>; 2] = Default::default();
        let mut lookups = [0; 2];
        for ((operation, buffer, reader), stamp) in operations.iter().zip(1..) {
            let (number, map) = (*reader, &mut maps[*buffer]);
            let (buffer, reader) = (&mut buffers[*buffer], &mut readers[*reader]);
            let through = |lookups: usize| if buffer.is_bypassed() { 0 } else { lookups as u64 };
            match operation {
                Operation::Get(key) => {
                    lookups[number] += through(1);
                    prop_assert_eq!(buffer.get(reader, key), map.get(key).copied());
                }
                Operation::GetEach(keys) => {
                    lookups[number] += through(keys.len());
                    let mut found = Vec::new();
                    buffer.get_each(reader, keys, |key, item| found.push((*key, item)));
                    prop_assert_eq!(found, looked_up(map, keys));
                }
                Operation::Calibrate(search, resolve) => {
                    let keys = (0..24).cycle().take(200);
                    let calibration = calibrate(buffer, (*search, *resolve), keys, 1);
                    prop_assert_eq!(buffer.is_bypassed(), !calibration.pays());
                }
                Operation::Put(key) | Operation::PutUntold(key) | Operation::Remove(key) => {
                    let changed = match stamp % 2 {
                        0 => buffer.change(key, |index| mutate(index, operation, stamp)),
                        _ => buffer.change_mut(key, |index| mutate(index, operation, stamp)),
                    };
                    prop_assert_eq!(changed, change_map(map, operation, stamp));
                }
            }
            let stats = reader.stats();
            prop_assert_eq!(stats.lookups, lookups[number]);
            prop_assert!(stats.misses <= stats.lookups);
        }
    }
}

/// A buffer with room for all of twelve keys.
fn roomy() -> Buffer<Slots> {
    let index = Slots { has_good_hashes: true, ..Slots::default() };
    for key in 0..12 {
        index.put(key, u64::from(key));
    }
    Buffer::new(index, Config { cache_bytes: 16 * 64, log_bytes: 1024 })
}

fn look_up(buffer: &Buffer<Slots>, reader: &mut Reader, times: usize) {
    for key in requests(times) {
        assert_eq!(buffer.get(reader, &key), Some(u64::from(key)));
    }
}

fn requests(times: usize) -> impl Iterator<Item = u16> {
    (0..12).cycle().take(times)
}

#[test]
fn counters_are_exact() {
    let (buffer, mut reader) = (roomy(), Reader::default());
    look_up(&buffer, &mut reader, 12);
    let stats = reader.stats();
    // Every first lookup missed and was emitted, since the table has room.
    assert_eq!((stats.lookups, stats.misses, stats.emitted), (12, 12, 12));
    look_up(&buffer, &mut reader, 24);
    let stats = reader.stats();
    assert_eq!((stats.lookups, stats.misses, stats.emitted), (36, 12, 12));
    assert_eq!(stats.hit_ratio(), 24.0 / 36.0);
    assert_eq!(buffer.get(&mut reader, &999), None);
    assert_eq!((reader.stats().lookups, reader.stats().misses), (37, 13));
}

/// A call with many keys makes the same lookups as single ones.
#[test]
fn many_keys_in_a_call_are_as_many_lookups() {
    let (singly, together) = (roomy(), roomy());
    let mut readers = [Reader::default(), Reader::default()];
    look_up(&singly, &mut readers[0], 36_000);
    let keys: Vec<u16> = requests(36_000).collect();
    let mut rest = &keys[..];
    for len in [0, 1, 5, 16, 17, 100, 10_000].into_iter().cycle() {
        let (now, later) = rest.split_at(len.min(rest.len()));
        together.get_each(&mut readers[1], now, |key, item| assert_eq!(item, Some(u64::from(*key))));
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    assert_eq!(readers[1].stats(), readers[0].stats());
}

#[test]
fn a_calibration_measures_the_ratio_and_decides_by_it() {
    for (resolve_ns, is_bypassed) in [(1, false), (88, false), (92, true), (100, true), (1_000, true)] {
        for keys_per_call in [0, 1, 64] {
            let mut buffer = roomy();
            let calibration = calibrate(&mut buffer, (100, resolve_ns), requests(40_000), keys_per_call);
            assert_eq!((calibration.table_ns, calibration.direct_ns), (resolve_ns as f64, 100.0));
            assert_eq!(buffer.is_bypassed(), is_bypassed, "{resolve_ns}");
            assert_eq!(buffer.table().is_none(), is_bypassed);
        }
    }
}

#[test]
fn a_calibration_by_no_keys_bypasses_the_buffer() {
    for keys in 0..4 {
        let mut buffer = roomy();
        calibrate(&mut buffer, (100, 100), requests(keys), 1);
        assert!(buffer.is_bypassed(), "{keys}");
    }
}

#[test]
fn interruptions_do_not_count() {
    let mut buffer = roomy();
    let clock = buffer.index().clock.clone();
    let mut readings = 0;
    buffer.index().search_ns.set(100);
    buffer.index().resolve_ns.set(50);
    let calibration = buffer.calibrate_with(requests(200_000), 1, || {
        readings += 1;
        // In a third of the blocks.
        if readings % 3 == 0 {
            clock.turn(1_000_000);
        }
        clock.now_ns()
    });
    assert_eq!((calibration.table_ns, calibration.direct_ns), (50.0, 100.0));
}

#[test]
fn a_bypassed_buffer_may_be_calibrated_again() {
    let (mut buffer, mut reader) = (roomy(), Reader::default());
    calibrate(&mut buffer, (10, 12), requests(10_000), 1);
    assert!(buffer.is_bypassed());
    look_up(&buffer, &mut reader, 1_000);
    assert_eq!(reader.stats().lookups, 0);
    // Changes of which the table was not notified.
    for key in 0..6_u16 {
        buffer.change(&key, |index| (None, index.remove(key)));
        buffer.change(&key, |index| (Some(index.put(key, u64::from(key)).into()), ()));
    }
    calibrate(&mut buffer, (100, 12), requests(10_000), 1);
    assert!(!buffer.is_bypassed());
    look_up(&buffer, &mut reader, 1_000);
    assert_eq!(reader.stats().lookups, 1_000);
}
