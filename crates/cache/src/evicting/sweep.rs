//! The incremental scan of the index (Lim's thesis, §5.3.3): removes entries of items that were evicted or have
//! expired.
//!
//! It must complete a round before positions repeat, since then an entry that was left over would seem to refer to an
//! item again. It runs four times as fast, and faster while there are items that expire: one bucket every sixteen
//! writes.

use crate::access::Access;
use crate::index::Index;
use crate::partition::{Body, Counters, Partition, Policy};
use crate::region::{CircularLog, MAIN, Position, Region};
use crate::sync::{AtomicU64, Ordering};

use super::policy::Evicting;

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

    /// Whether items that expire may be present.
    #[inline(always)]
    pub fn is_expiring(&self) -> bool {
        self.expiring.load(Ordering::Relaxed) != 0
    }

    /// Starts again at the beginning, for another index, which has no entries of evicted items.
    pub fn restart_over(&self, body: &Body<Evicting>) {
        self.next.store(0, Ordering::Relaxed);
        self.paced.store(Pace::of(body).step, Ordering::Relaxed);
    }
}

/// The progress of the main log.
struct Pace {
    /// Steps of its wrap; one bucket is due per step.
    step: u64,
    steps_per_wrap: u64,
}

impl Pace {
    fn of(body: &Body<Evicting>) -> Self {
        let layout = body.region.logs[MAIN].layout();
        let tail = layout.distance(Position(0), body.region.logs[MAIN].tail());
        let wrap = layout.capacity() * layout.laps();
        let step_words = (wrap / ROUNDS_PER_WRAP / body.index.len() as u64).max(1);
        Self { step: tail / step_words, steps_per_wrap: wrap / step_words + 1 }
    }
}

impl<A: Access> Partition<Evicting, A> {
    /// Scans what is due with one write.
    #[inline(always)]
    pub(super) fn sweep_some(&self, body: &Body<Evicting>) {
        if self.policy.leaves_entries() {
            self.keep_pace(body);
        }
        if self.policy.sweeper.is_expiring() {
            let writes = self.policy.sweeper.writes.load(Ordering::Relaxed) + 1;
            self.policy.sweeper.writes.store(writes, Ordering::Relaxed);
            if writes.is_multiple_of(WRITES_PER_EXPIRY_SWEEP) {
                self.sweep_next(body, 1);
            }
        }
    }

    fn keep_pace(&self, body: &Body<Evicting>) {
        let Pace { step, steps_per_wrap } = Pace::of(body);
        let paced = self.policy.sweeper.paced.load(Ordering::Relaxed);
        if step == paced {
            return;
        }
        let due = if step > paced { step - paced } else { step + steps_per_wrap - paced };
        self.policy.sweeper.paced.store(step, Ordering::Relaxed);
        self.sweep_next(body, due.min(body.index.len() as u64) as usize);
    }

    /// Scans the next `buckets` buckets of the index, as a write of its own. All of them include the zone.
    pub fn sweep(&self, buckets: usize) {
        let _writing = self.enter();
        let body = self.body.get();
        self.sweep_next(body, buckets.min(body.index.len()));
        if let Some(tiers) = self.policy.tiers.as_deref().filter(|_| buckets >= body.index.len()) {
            tiers.zone.drop_expired(&self.common);
        }
    }

    fn sweep_next(&self, body: &Body<Evicting>, buckets: usize) {
        let len = body.index.len() as u64;
        for _ in 0..buckets {
            let next = self.policy.sweeper.next.load(Ordering::Relaxed);
            self.sweep_bucket(body, next as usize);
            let following = if next + 1 >= len { 0 } else { next + 1 };
            self.policy.sweeper.next.store(following, Ordering::Relaxed);
            if following == 0 {
                let rounds = self.policy.sweeper.expiring.load(Ordering::Relaxed);
                self.policy.sweeper.expiring.store(rounds.saturating_sub(1), Ordering::Relaxed);
            }
        }
    }

    fn sweep_bucket(&self, body: &Body<Evicting>, number: usize) {
        for (slot, entry) in body.index.entries(number) {
            match body.region.item(entry) {
                None => self.unlink(body, number, slot, &self.counters.evicted),
                Some(stored) if stored.header.has_expiry() => {
                    if self.is_expired(stored.metadata()) {
                        self.unlink(body, number, slot, &self.counters.expired);
                    } else {
                        self.policy.sweeper.note_expiry();
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Writer: removes the entries of items that were evicted.
    pub(super) fn unlink_evicted(&self, body: &Body<Evicting>) {
        if self.policy.leaves_entries() {
            self.unlink_each(body, |is_there| (!is_there).then_some(&self.counters.evicted));
        }
    }

    /// Removes all items; the memory stays.
    pub fn clear(&self) {
        let _writing = self.enter();
        let body = self.body.get();
        Evicting::before_write(self, body);
        let Counters { removed, evicted, .. } = &*self.counters;
        self.unlink_each(body, |is_there| Some(if is_there { removed } else { evicted }));
        self.empty_all(body);
        body.region.logs.iter().for_each(CircularLog::clear);
        self.policy.tiers.iter().for_each(|tiers| tiers.zone.clear());
    }

    /// Writer: removes the entries for which there is a reason. It may depend on whether the item is there.
    fn unlink_each<'c>(&self, body: &Body<Evicting>, reason: impl Fn(bool) -> Option<&'c AtomicU64>) {
        for bucket in 0..body.index.len() {
            for (slot, entry) in body.index.entries(bucket) {
                if let Some(reason) = reason(body.region.contains(entry)) {
                    self.unlink(body, bucket, slot, reason);
                }
            }
        }
    }
}
