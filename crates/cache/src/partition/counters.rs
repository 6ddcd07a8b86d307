//! Counters of a partition.

use crate::sync::{AtomicU64, Ordering, add_alone};

/// Number of cache lines over which the threads' reads are spread. All but the first belong to one thread each.
const STRIPES: usize = 16;

/// Counters that the writer keeps, behind the gate.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub inserted: AtomicU64,
    pub replaced: AtomicU64,
    pub updated_in_place: AtomicU64,
    pub removed: AtomicU64,
    pub evicted: AtomicU64,
    pub evicted_by_index: AtomicU64,
    pub expired: AtomicU64,
    pub moved: AtomicU64,
    pub refused: AtomicU64,
    /// Items that are stored inline.
    pub inline: AtomicU64,
}

impl Counters {
    /// Increments a counter, as the only writer.
    #[inline(always)]
    pub fn count(counter: &AtomicU64) {
        add_alone(counter, 1);
    }

    /// Decrements a counter.
    #[inline(always)]
    pub fn uncount(counter: &AtomicU64) {
        add_alone(counter, u64::MAX);
    }

    /// Items in the index. Every item that was inserted is still present or left in one of the ways counted.
    pub fn items(&self) -> u64 {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let left =
            [&self.removed, &self.evicted, &self.evicted_by_index, &self.expired].into_iter().map(load).sum();
        load(&self.inserted).saturating_sub(left)
    }
}

/// Hits and misses, counted by any thread.
#[derive(Debug, Default)]
pub(crate) struct ReadCounters {
    stripes: [Stripe; STRIPES],
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Stripe {
    /// Misses and hits.
    reads: [AtomicU64; 2],
}

impl ReadCounters {
    /// Counts a read. `is_shared` unless only one thread uses the partition.
    #[inline(always)]
    pub fn count(&self, is_hit: bool, is_shared: bool) {
        let stripe = if is_shared { crate::stripe::thread_number() as usize } else { 1 };
        match self.stripes.get(stripe) {
            Some(own) => add_alone(&own.reads[usize::from(is_hit)], 1),
            None => {
                self.stripes[0].reads[usize::from(is_hit)].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Hits and misses so far.
    pub fn sum(&self) -> (u64, u64) {
        self.stripes.iter().fold((0, 0), |(hits, misses), stripe| {
            let [more_misses, more_hits] = &stripe.reads;
            (hits + more_hits.load(Ordering::Relaxed), misses + more_misses.load(Ordering::Relaxed))
        })
    }
}
