//! Access counts, two bits for each entry of a bucket, up to 3.
//!
//! All threads load and store them without a lock, since a locked instruction would keep a lookup from starting its
//! loads before the previous lookup has ended. So an access may be lost, and a new item may start with the count of the
//! one that it replaced: the choice of victims tolerates that.

use crate::sync::{AtomicU32, Ordering};

const COUNT_BITS: u32 = 2;
const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

/// Position of the clock hand, in buckets of at most twelve ways.
const HAND_SHIFT: u32 = COUNT_BITS * 12;

/// See the module. Bits for up to sixteen ways; an index in store mode uses the word for something else.
#[derive(Debug)]
pub(crate) struct AccessCounts(pub(super) AtomicU32);

impl AccessCounts {
    /// No accesses.
    #[cfg(any(test, not(target_os = "linux"), miri, loom))]
    pub fn none() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Accesses counted for `way`, 0 to 3.
    #[inline(always)]
    pub fn get(&self, way: usize) -> u32 {
        self.0.load(Ordering::Relaxed) >> shift(way) & COUNT_MAX
    }

    /// Sets the count of `way`.
    #[inline(always)]
    pub fn set(&self, way: usize, count: u32) {
        debug_assert!(count <= COUNT_MAX);
        let others = self.0.load(Ordering::Relaxed) & !(COUNT_MAX << shift(way));
        self.0.store(others | count << shift(way), Ordering::Relaxed);
    }

    /// Where the search for a victim starts, in a bucket of at most twelve ways. An update of it may be lost, too.
    pub fn hand(&self) -> usize {
        (self.0.load(Ordering::Relaxed) >> HAND_SHIFT) as usize
    }

    /// Sets the hand.
    pub fn set_hand(&self, hand: usize) {
        let counts = self.0.load(Ordering::Relaxed) & ((1 << HAND_SHIFT) - 1);
        self.0.store(counts | (hand as u32) << HAND_SHIFT, Ordering::Relaxed);
    }

    /// Counts an access of `way`, up to `max`, which is 1 or 2. The count may be lost.
    #[inline(always)]
    pub fn count(&self, way: usize, max: u32) {
        debug_assert!(max == 1 || max == 2);
        let counts = self.0.load(Ordering::Relaxed);
        // A count limited to 1 or 2 has reached the limit when it has that bit.
        if counts & max << shift(way) == 0 {
            self.0.store(counts + (1 << shift(way)), Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn shift(way: usize) -> u32 {
    COUNT_BITS * way as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ways_do_not_touch_each_other() {
        let counts = AccessCounts::none();
        for way in 0..16 {
            (0..3).for_each(|_| counts.count(way, 2));
        }
        counts.set(3, 1);
        let all: Vec<u32> = (0..16).map(|way| counts.get(way)).collect();
        assert_eq!(all, [2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
    }
}
