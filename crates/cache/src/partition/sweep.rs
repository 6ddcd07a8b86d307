//! The incremental scan of the index (Lim's thesis, §5.3.3): removes entries of items that were evicted or have
//! expired.
//!
//! It must complete a round before positions repeat, since then an entry that was left over would seem to refer to an
//! item again. It runs four times as fast, and faster while there are items that expire: one bucket every sixteen
//! writes.

use crate::access::Access;
use crate::index::Entry;
use crate::index::bucket::WAYS;
use crate::item::Header;
use crate::sync::{AtomicU64, Ordering};

use super::Partition;
use super::body::{Body, MAIN};
use super::read::Stored;

/// Rounds of the scan in the time in which positions repeat.
const ROUNDS_PER_WRAP: u64 = 4;
const WRITES_PER_EXPIRY_SWEEP: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct Sweeper {
    /// Next bucket.
    next: AtomicU64,
    /// The position of the main log's tail, in 2⁻¹⁶ of its wrap, up to which the scan has kept pace.
    paced: AtomicU64,
    writes: AtomicU64,
    /// Whether an item that expires was written in this round or in the previous one: 2, 1, 0.
    expiring: AtomicU64,
}

impl Sweeper {
    #[inline(always)]
    pub fn note_expiry(&self) {
        self.expiring.store(2, Ordering::Relaxed);
    }

    /// Starts again at the beginning, for another index.
    pub fn restart(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.paced.store(0, Ordering::Relaxed);
    }
}

/// The progress of the main log.
struct Pace {
    /// Steps of its wrap; one bucket is due per step.
    step: u64,
    steps_per_wrap: u64,
}

impl Pace {
    fn of(body: &Body) -> Self {
        let layout = body.logs[MAIN].layout();
        let tail = layout.distance(crate::log::Position(0), body.logs[MAIN].tail());
        let wrap = layout.capacity() * layout.laps();
        let step_words = (wrap / ROUNDS_PER_WRAP / body.index.buckets().len() as u64).max(1);
        Self { step: tail / step_words, steps_per_wrap: wrap / step_words + 1 }
    }
}

impl<A: Access> Partition<A> {
    /// Whether a write has upkeep to do besides its own operation.
    #[inline(always)]
    pub(super) fn is_upkeep_due(&self) -> bool {
        self.common.eviction.leaves_entries() || self.sweeper.expiring.load(Ordering::Relaxed) != 0
    }

    /// Scans what is due with one write.
    #[inline(always)]
    pub(super) fn sweep_some(&self, body: &Body) {
        if self.common.eviction.leaves_entries() {
            self.keep_pace(body);
        }
        if self.sweeper.expiring.load(Ordering::Relaxed) != 0 {
            let writes = self.sweeper.writes.load(Ordering::Relaxed) + 1;
            self.sweeper.writes.store(writes, Ordering::Relaxed);
            if writes.is_multiple_of(WRITES_PER_EXPIRY_SWEEP) {
                self.sweep_next(body, 1);
            }
        }
    }

    fn keep_pace(&self, body: &Body) {
        let Pace { step, steps_per_wrap } = Pace::of(body);
        let paced = self.sweeper.paced.load(Ordering::Relaxed);
        if step == paced {
            return;
        }
        let due = if step > paced { step - paced } else { step + steps_per_wrap - paced };
        self.sweeper.paced.store(step, Ordering::Relaxed);
        self.sweep_next(body, due.min(body.index.buckets().len() as u64) as usize);
    }

    /// Called when the index has grown, and so has no entries of evicted items.
    pub(super) fn sweeper_grows(&self, new: &Body) {
        self.sweeper.next.store(0, Ordering::Relaxed);
        self.sweeper.paced.store(Pace::of(new).step, Ordering::Relaxed);
    }

    /// Scans the next `buckets` buckets of the index, as a write of its own.
    pub fn sweep(&self, buckets: usize) {
        let _writing = self.enter();
        let body = self.body.get();
        self.sweep_next(body, buckets.min(body.index.buckets().len()));
    }

    fn sweep_next(&self, body: &Body, buckets: usize) {
        let len = body.index.buckets().len() as u64;
        for _ in 0..buckets {
            let next = self.sweeper.next.load(Ordering::Relaxed);
            self.sweep_bucket(body, next as usize);
            let following = if next + 1 >= len { 0 } else { next + 1 };
            self.sweeper.next.store(following, Ordering::Relaxed);
            if following == 0 {
                let rounds = self.sweeper.expiring.load(Ordering::Relaxed);
                self.sweeper.expiring.store(rounds.saturating_sub(1), Ordering::Relaxed);
            }
        }
    }

    fn sweep_bucket(&self, body: &Body, number: usize) {
        let bucket = &body.index.buckets()[number];
        for way in 0..WAYS {
            let entry = bucket.entry(way);
            if entry.is_empty() {
                continue;
            }
            match self.stored(body, entry) {
                None => self.unlink(bucket, way, &self.counters.evicted),
                Some(stored) if stored.header.has_expiry() => {
                    if self.is_expired(stored.metadata()) {
                        self.unlink(bucket, way, &self.counters.expired);
                    } else {
                        self.sweeper.note_expiry();
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Writer: the item of an entry.
    #[inline(always)]
    pub(super) fn stored<'a>(&self, body: &'a Body, entry: Entry) -> Option<Stored<'a>> {
        let log = body.log(entry);
        log.contains(entry.position()).then(|| Stored {
            log,
            unit: log.layout().unit(entry.position()),
            header: Header(log.load(entry.position(), 0)),
        })
    }

    /// Writer: removes the entries of items that were evicted.
    pub(super) fn unlink_evicted(&self, body: &Body) {
        if !self.common.eviction.leaves_entries() {
            return;
        }
        for bucket in body.index.buckets() {
            for way in 0..WAYS {
                let entry = bucket.entry(way);
                if !entry.is_empty() && self.stored(body, entry).is_none() {
                    self.unlink(bucket, way, &self.counters.evicted);
                }
            }
        }
    }

    /// Writer: removes all entries.
    pub(super) fn unlink_all(&self, body: &Body) {
        for bucket in body.index.buckets() {
            for way in 0..WAYS {
                let entry = bucket.entry(way);
                if !entry.is_empty() {
                    let is_there = body.log(entry).contains(entry.position());
                    let reason = if is_there { &self.counters.removed } else { &self.counters.evicted };
                    self.unlink(bucket, way, reason);
                }
            }
        }
    }
}
