//! Random operations on a buffer in front of an index, compared with a map: no answer is stale, whether or not the
//! buffer is bypassed meanwhile.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use alluvium_index::slb::{Clock, Config, Lookup, OwnedBuffer, Pace, Reference, SharedBuffer};
use proptest::prelude::*;

/// A clock that only its holders advance.
#[derive(Clone, Debug, Default)]
struct Hand(Rc<Cell<u64>>);

impl Hand {
    fn turn(&self, ns: u64) {
        self.0.set(self.0.get() + ns);
    }
}

impl Clock for Hand {
    fn now_ns(&self) -> u64 {
        self.0.get()
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

/// Trials every few lookups.
fn hasty() -> Config {
    let pace = Pace { window: 8, block: 4, stretch_ns_min: 0, pairs: 3, interval_min: 16, interval_max: 64 };
    Config { cache_bytes: 2 * 64, log_bytes: 64, pace }
}

#[derive(Clone, Debug)]
enum Operation {
    Get(u16),
    GetEach(Vec<u16>),
    Put(u16),
    PutUntold(u16),
    Remove(u16),
    Price(u64, u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..24_u16;
    prop_oneof![
        8 => key.clone().prop_map(Operation::Get),
        2 => prop::collection::vec(key.clone(), 0..40).prop_map(Operation::GetEach),
        2 => key.clone().prop_map(Operation::Put),
        1 => key.clone().prop_map(Operation::PutUntold),
        2 => key.prop_map(Operation::Remove),
        1 => (1..9_u64, 1..9_u64).prop_map(|(search, resolve)| Operation::Price(search, resolve)),
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
    fn an_owned_buffer_agrees_with_a_map(operations in prop::collection::vec(operation(), 1..600)) {
        let clock = Hand::default();
        let index = Slots { clock: clock.clone(), ..Slots::default() };
        let mut buffer = OwnedBuffer::with_clock(index, hasty(), clock, 7);
        let mut map = HashMap::new();
        let mut lookups = 0;
        for (operation, stamp) in operations.iter().zip(1..) {
            match operation {
                Operation::Get(key) => {
                    prop_assert_eq!(buffer.get(key), map.get(key).copied());
                    lookups += 1;
                }
                Operation::GetEach(keys) => {
                    let mut found = Vec::new();
                    buffer.get_each(keys, |key, item| found.push((*key, item)));
                    prop_assert_eq!(found, looked_up(&map, keys));
                    lookups += keys.len() as u64;
                }
                Operation::Price(search, resolve) => {
                    buffer.index().search_ns.set(*search);
                    buffer.index().resolve_ns.set(*resolve);
                }
                Operation::Put(key) | Operation::PutUntold(key) | Operation::Remove(key) => {
                    let changed = buffer.change(key, |index| mutate(index, operation, stamp));
                    prop_assert_eq!(changed, change_map(&mut map, operation, stamp));
                }
            }
            let stats = buffer.stats();
            prop_assert_eq!(stats.lookups + stats.lookups_direct, lookups);
            prop_assert!(stats.hits <= stats.lookups);
        }
    }

    #[test]
    fn two_readers_of_two_shared_buffers_agree_with_maps(
        operations in prop::collection::vec((operation(), 0..2_usize, 0..2_usize), 1..600),
    ) {
        let clock = Hand::default();
        let buffers = [(); 2].map(|()| SharedBuffer::new(Slots { clock: clock.clone(), ..Slots::default() }, hasty()));
        let mut readers = [buffers[0].reader_with(clock.clone(), 7), buffers[1].reader_with(clock, 8)];
        let mut maps: [HashMap<u16, u64>; 2] = Default::default();
        for ((operation, buffer, reader), stamp) in operations.iter().zip(1..) {
            let (buffer, map, reader) = (&buffers[*buffer], &mut maps[*buffer], &mut readers[*reader]);
            match operation {
                Operation::Get(key) => prop_assert_eq!(buffer.get(reader, key), map.get(key).copied()),
                Operation::GetEach(keys) => {
                    let mut found = Vec::new();
                    buffer.get_each(reader, keys, |key, item| found.push((*key, item)));
                    prop_assert_eq!(found, looked_up(map, keys));
                }
                Operation::Price(search, resolve) => {
                    buffer.index().search_ns.set(*search);
                    buffer.index().resolve_ns.set(*resolve);
                }
                Operation::Put(key) | Operation::PutUntold(key) | Operation::Remove(key) => {
                    let changed = buffer.change(key, |index| mutate(index, operation, stamp));
                    prop_assert_eq!(changed, change_map(map, operation, stamp));
                }
            }
        }
    }
}

/// A buffer with room for all keys, for which lookups take these times in the index and in the buffer.
fn priced(search_ns: u64, resolve_ns: u64) -> (OwnedBuffer<Slots, Hand>, Hand) {
    let pace =
        Pace { window: 64, block: 16, stretch_ns_min: 0, pairs: 5, interval_min: 1_000, interval_max: 4_000 };
    paced(search_ns, resolve_ns, pace)
}

fn paced(search_ns: u64, resolve_ns: u64, pace: Pace) -> (OwnedBuffer<Slots, Hand>, Hand) {
    let clock = Hand::default();
    let index = Slots { clock: clock.clone(), has_good_hashes: true, ..Slots::default() };
    index.search_ns.set(search_ns);
    index.resolve_ns.set(resolve_ns);
    for key in 0..12 {
        index.put(key, u64::from(key));
    }
    let config = Config { cache_bytes: 16 * 64, log_bytes: 1024, pace };
    (OwnedBuffer::with_clock(index, config, clock.clone(), 3), clock)
}

fn look_up(buffer: &mut OwnedBuffer<Slots, Hand>, times: usize) {
    for number in 0..times {
        let key = (number % 12) as u16;
        assert_eq!(buffer.get(&key), Some(u64::from(key)));
    }
}

#[test]
fn counters_are_exact() {
    let (mut buffer, _) = priced(10, 1);
    look_up(&mut buffer, 12);
    let stats = buffer.stats();
    // Every first lookup missed and was emitted, since the table has room.
    assert_eq!((stats.lookups, stats.hits, stats.emitted, stats.lookups_direct), (12, 0, 12, 0));
    look_up(&mut buffer, 24);
    let stats = buffer.stats();
    assert_eq!((stats.lookups, stats.hits, stats.emitted), (36, 24, 12));
    assert_eq!(stats.hit_ratio(), 24.0 / 36.0);
    assert_eq!(buffer.get(&999), None);
    assert_eq!((buffer.stats().lookups, buffer.stats().hits), (37, 24));
}

#[test]
fn it_stays_where_it_pays() {
    let (mut buffer, clock) = priced(10, 2);
    look_up(&mut buffer, 400_000);
    let stats = buffer.stats();
    assert!(!stats.is_aside && stats.steps_aside == 0, "{stats:?}");
    assert!(stats.trials >= 5 && stats.trial_ratio == 0.2, "{stats:?}");
    // All lookups through the table, plus 2 % for the first misses and the comparisons.
    assert!(clock.now_ns() < 400_000 * 2 * 102 / 100, "{stats:?}");
}

/// A call with many keys makes the same lookups: they hit, miss, and end the stages of the pilot at the same points as
/// single ones.
#[test]
fn many_keys_in_a_call_are_as_many_lookups() {
    for (search_ns, resolve_ns) in [(10, 2), (10, 12)] {
        let (mut singly, _) = priced(search_ns, resolve_ns);
        let (mut together, _) = priced(search_ns, resolve_ns);
        look_up(&mut singly, 36_000);
        let keys: Vec<u16> = (0..12).cycle().take(36_000).collect();
        let mut rest = &keys[..];
        for len in [0, 1, 5, 16, 17, 100, 10_000].into_iter().cycle() {
            let (now, later) = rest.split_at(len.min(rest.len()));
            together.get_each(now, |key, item| assert_eq!(item, Some(u64::from(*key))));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(together.stats(), singly.stats());
    }
}

#[test]
fn it_steps_aside_where_it_does_not_pay_and_comes_back_where_it_does() {
    let (mut buffer, _) = priced(10, 12);
    look_up(&mut buffer, 60_000);
    let aside = buffer.stats();
    assert!(aside.is_aside && aside.steps_aside == 1, "{aside:?}");
    assert!(aside.lookups < 60_000 / 8 && aside.trials > 1, "{aside:?}");
    // Changes that are not reported to the table while it is bypassed do no harm when it is used again.
    for key in 0..6_u16 {
        buffer.change(&key, |index| (None, index.remove(key)));
        buffer.change(&key, |index| (Some(index.put(key, u64::from(key)).into()), ()));
    }
    buffer.index().search_ns.set(100);
    look_up(&mut buffer, 20_000);
    let back = buffer.stats();
    assert!(!back.is_aside && back.hits > aside.hits, "{back:?}");
}

#[test]
fn what_does_not_pay_costs_two_percent_at_most_at_any_price() {
    for resolve_ns in [11, 20, 100, 1_000] {
        let (mut buffer, clock) = priced(10, resolve_ns);
        look_up(&mut buffer, 1_000);
        let before = clock.now_ns();
        look_up(&mut buffer, 10_000_000);
        let took = clock.now_ns() - before;
        assert!(took < 10_000_000 * 10 * 102 / 100, "{resolve_ns}: {took}, {:?}", buffer.stats());
    }
}

/// Here the first trial is long, and the interval after it longer than any other would be.
#[test]
fn the_first_trial_too_costs_a_hundredth_of_what_follows() {
    let pace = Pace {
        window: 64,
        block: 16,
        stretch_ns_min: 20_000,
        pairs: 5,
        interval_min: 1_000,
        interval_max: 4_000,
    };
    let (mut buffer, _) = paced(10, 20, pace);
    while buffer.stats().trials == 0 {
        look_up(&mut buffer, 1);
    }
    let trial = buffer.stats().lookups;
    assert!(trial > 3 * 2_000, "{trial}");
    look_up(&mut buffer, 90 * trial as usize);
    assert_eq!(buffer.stats().trials, 1);
}

#[test]
fn a_gain_between_the_thresholds_changes_nothing() {
    for (resolve_ns, is_aside) in [(97, true), (92, true), (88, false)] {
        let (mut buffer, _) = priced(100, resolve_ns);
        look_up(&mut buffer, 20_000);
        assert_eq!(
            buffer.stats().is_aside,
            is_aside,
            "{resolve_ns}: less than a tenth is too little to come in"
        );
    }
    let (mut buffer, _) = priced(100, 50);
    look_up(&mut buffer, 20_000);
    for (resolve_ns, is_aside) in [(97, false), (100, true)] {
        buffer.index().resolve_ns.set(resolve_ns);
        look_up(&mut buffer, 20_000);
        assert_eq!(buffer.stats().is_aside, is_aside, "{resolve_ns}");
    }
}
