//! Readers beside writers of a lookaside buffer, in every interleaving and every order of memory that the declared
//! orderings allow: `RUSTFLAGS="--cfg loom" cargo test -p alluvium-index --release loom_`.
//!
//! The table has one line. Items are two words that a change stores one after the other.
#![cfg(loom)]

use alluvium_index::slb::{Outcome, Reference, Table};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

const HASH: u64 = 7;
const OTHER_HASH: u64 = 9;

/// Preemptions explored.
const PREEMPTIONS: usize = 3;

fn model(story: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 1_000_000;
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(story);
}

/// An index of one key: its item's position, protected by a lock, and two slots.
struct Index {
    table: Table,
    place: Mutex<Option<u32>>,
    slots: [[AtomicU64; 2]; 2],
}

impl Index {
    fn new() -> Arc<Self> {
        let slot = |stamp| [AtomicU64::new(stamp), AtomicU64::new(stamp)];
        let table = Table::new(64, 64);
        Arc::new(Self { table, place: Mutex::new(Some(0)), slots: [slot(1), slot(0)] })
    }

    fn read(&self, slot: u64) -> [u64; 2] {
        self.slots[slot as usize].each_ref().map(|half| half.load(Ordering::Relaxed))
    }

    /// A lookup as buffers make it, which emits what it finds; returns whether it was a hit, and the item.
    fn get(&self) -> (bool, Option<u64>) {
        let whole = |item: [u64; 2]| {
            assert_eq!(item[0], item[1], "half of one item, half of another");
            item[0]
        };
        let ticket = match self.table.find(HASH, |reference| Some(self.read(reference.number()))) {
            Outcome::Hit(item, _) => return (true, Some(whole(item))),
            Outcome::Miss(ticket) => ticket,
        };
        let place = self.place.lock().unwrap();
        let Some(slot) = *place else { return (false, None) };
        let item = self.read(u64::from(slot));
        drop(place);
        if let Some(ticket) = ticket {
            self.table.emit(ticket, HASH, slot.into());
        }
        (false, Some(whole(item)))
    }

    fn store(&self, slot: u32, stamp: u64) {
        self.slots[slot as usize].iter().for_each(|half| half.store(stamp, Ordering::Relaxed));
    }

    fn remove(&self) {
        let _change = self.table.change(HASH);
        *self.place.lock().unwrap() = None;
    }

    /// Moves the item to `slot` with a new stamp; tells the buffer if `is_told`.
    fn put(&self, slot: u32, stamp: u64, is_told: bool) {
        let change = self.table.change(HASH);
        let mut place = self.place.lock().unwrap();
        self.store(slot, stamp);
        *place = Some(slot);
        drop(place);
        if is_told {
            change.update(Reference::from(slot));
        }
    }

    /// The content of the index.
    fn truth(&self) -> Option<u64> {
        let place = self.place.lock().unwrap();
        place.map(|slot| self.read(u64::from(slot))[0])
    }
}

/// A reader that found the item in the index before its removal emits it afterwards: then no lookup may find it.
#[test]
fn loom_a_removed_item_is_not_emitted_behind_the_removal() {
    model(|| {
        let index = Index::new();
        let reader = {
            let index = index.clone();
            thread::spawn(move || index.get().1)
        };
        index.remove();
        assert_eq!(index.get(), (false, None), "after the removal");
        let seen = reader.join().unwrap();
        assert!(seen.is_none() || seen == Some(1));
        assert_eq!(index.get(), (false, None), "after both");
    });
}

/// A cached item is overwritten in place by a change: a hit at the same time has the whole old item or is not a hit,
/// and a reader that has seen the new item sees it from then on.
#[test]
fn loom_an_item_changed_in_place_is_seen_whole_and_never_older_again() {
    model(|| {
        let index = Index::new();
        assert_eq!(index.get(), (false, Some(1)));
        let reader = {
            let index = index.clone();
            thread::spawn(move || {
                let first = index.get().1.unwrap();
                let second = index.get().1.unwrap();
                assert!(first <= second, "{second} after {first}");
            })
        };
        index.put(0, 2, true);
        assert_eq!(index.get(), (true, Some(2)));
        reader.join().unwrap();
    });
}

/// A cached item moves, and its old slot gets other bytes: no hit returns those.
#[test]
fn loom_a_slot_used_again_lends_its_bytes_to_no_lookup() {
    model(|| {
        let index = Index::new();
        assert_eq!(index.get(), (false, Some(1)));
        let reader = {
            let index = index.clone();
            thread::spawn(move || index.get().1)
        };
        index.put(1, 2, false);
        index.store(0, 99);
        let seen = reader.join().unwrap();
        assert!(seen == Some(1) || seen == Some(2), "{seen:?}");
        assert_eq!(index.get().1, Some(2));
    });
}

/// Two threads change the key at once, and each reports where it put the item: the buffer has what the index has, or
/// nothing.
#[test]
fn loom_two_changes_at_once_leave_what_came_last() {
    model(|| {
        let index = Index::new();
        assert_eq!(index.get(), (false, Some(1)));
        let other = {
            let index = index.clone();
            thread::spawn(move || index.put(1, 2, true))
        };
        index.put(0, 3, true);
        other.join().unwrap();
        assert_eq!(index.get().1, index.truth());
    });
}

/// A reader beside an emission of another key into the same line, which evicts the key: the reader sees the old item or
/// none.
#[test]
fn loom_an_eviction_lends_no_reference() {
    model(|| {
        let index = Index::new();
        assert_eq!(index.get(), (false, Some(1)));
        for number in 0..6 {
            let hash = 100 + number;
            let Outcome::Miss(Some(ticket)) = index.table.find(hash, Some) else { panic!("it is new") };
            assert!(index.table.emit(ticket, hash, 1.into()));
        }
        let reader = {
            let index = index.clone();
            thread::spawn(move || assert_eq!(index.get().1, Some(1)))
        };
        let Outcome::Miss(Some(ticket)) = index.table.find(OTHER_HASH, Some) else { panic!("it is new") };
        index.table.emit(ticket, OTHER_HASH, 1.into());
        reader.join().unwrap();
    });
}
