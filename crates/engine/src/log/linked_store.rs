//! [`LinkedStore`]: what the log store of a chained keyspace has besides.

use alluvium_base::KeyspaceId;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};

use super::linked_record::encode_slots;
use super::segment::Segment;
use super::writer::Log;

/// Maximum number of slots in a region: for more items than links reach.
const SLOTS_MAX: u64 = 1 << 32;

/// The slots of a directory, as the log notes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    /// Number of slots in each region.
    pub number: u64,
    /// Whether a key has two.
    pub are_two: bool,
}

impl Slots {
    /// As in a record of the log. `None` for a number that no directory has.
    pub fn of_doubled(doubled: u64) -> Option<Self> {
        let slots = Self { number: doubled / 2, are_two: doubled % 2 == 1 };
        let is_possible = slots.number.is_multiple_of(if slots.are_two { 2 } else { 1 });
        ((1..=SLOTS_MAX).contains(&slots.number) && is_possible).then_some(slots)
    }

    fn doubled(self) -> u64 {
        2 * self.number + u64::from(self.are_two)
    }
}

/// What a log store of a chained keyspace has: its records have links.
#[derive(Debug)]
pub(crate) struct LinkedStore {
    /// The slots for the records of the store.
    pub slots: Slots,
    /// Whether the log says so.
    is_noted: AtomicBool,
    noting: Mutex<()>,
}

impl LinkedStore {
    pub fn new(slots: Slots) -> Self {
        Self { slots, is_noted: AtomicBool::new(false), noting: Mutex::new(()) }
    }

    /// Appends the record that says how many slots there are, before the first record with a link; returns whether
    /// there was room. The segment is active.
    pub fn note(&self, log: &Log, segment: &Segment, keyspace: KeyspaceId) -> bool {
        if self.is_noted.load(Ordering::Acquire) {
            return true;
        }
        let _only_one = self.noting.lock().expect("no panic while held");
        if !self.is_noted.load(Ordering::Acquire) {
            let record = encode_slots(segment.seed, keyspace, self.slots.doubled());
            if log.append(segment, &record).is_none() {
                return false;
            }
            self.is_noted.store(true, Ordering::Release);
        }
        true
    }
}
