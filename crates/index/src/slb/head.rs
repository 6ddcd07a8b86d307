//! [`Head`]: the first word of a line of the cache table.
//!
//! ```text
//!   63                       35 34   29   28    27   24       3  0
//!  [ version: changes so far   |changers|lock|count 6|  ...  |count 0]
//! ```
//!
//! A *change* of a key lasts from before a writer changes the index until after. `version` counts the changes that
//! began in this line, `changers` those in progress. `lock` is held for the few stores that edit the line, never while
//! anything else runs.
//!
//! A version that has reached its maximum stays there, and so does a line with more than 62 changes at once: it is
//! *retired*, holds no entry and takes none. So no count wraps, and no thread waits for room in one.

use super::line::WAYS;

const COUNT_BITS: u32 = 4;
pub(super) const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
const LOCK_SHIFT: u32 = COUNT_BITS * WAYS as u32;
const LOCK: u64 = 1 << LOCK_SHIFT;
const CHANGERS_SHIFT: u32 = LOCK_SHIFT + 1;
const CHANGER: u64 = 1 << CHANGERS_SHIFT;
const CHANGERS_MAX: u64 = (1 << 6) - 2;
const VERSION_SHIFT: u32 = CHANGERS_SHIFT + 6;
const VERSION_MAX: u64 = u64::MAX >> VERSION_SHIFT;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head(pub u64);

impl Head {
    #[inline(always)]
    pub fn version(self) -> u64 {
        self.0 >> VERSION_SHIFT
    }

    #[inline(always)]
    pub fn is_locked(self) -> bool {
        self.0 & LOCK != 0
    }

    pub fn changers(self) -> u64 {
        self.0 >> CHANGERS_SHIFT & ((1 << (VERSION_SHIFT - CHANGERS_SHIFT)) - 1)
    }

    pub fn is_retired(self) -> bool {
        self.version() == VERSION_MAX
    }

    pub fn locked(self) -> Self {
        Self(self.0 | LOCK)
    }

    /// The head with one more change, which may retire the line.
    pub fn with_change_begun(self) -> Self {
        let is_last = self.version() + 1 >= VERSION_MAX || self.changers() == CHANGERS_MAX;
        if self.is_retired() || is_last {
            return Self(VERSION_MAX << VERSION_SHIFT | self.0 & LOCK);
        }
        Self(self.0 + CHANGER + (1 << VERSION_SHIFT))
    }

    /// The head with one change less. A retired line counts nothing.
    pub fn with_change_ended(self) -> Self {
        if self.is_retired() { self } else { Self(self.0 - CHANGER) }
    }

    pub fn count(self, way: usize) -> u64 {
        self.0 >> (COUNT_BITS * way as u32) & COUNT_MAX
    }

    pub fn with_count(self, way: usize, count: u64) -> Self {
        let shift = COUNT_BITS * way as u32;
        Self(self.0 & !(COUNT_MAX << shift) | count.min(COUNT_MAX) << shift)
    }

    /// The head with one more hit of `way`. A count at its maximum stays, and another one that isn't zero, picked by
    /// `random`, is decremented (§2.3.3.1).
    pub fn with_hit(self, way: usize, random: u64) -> Self {
        let count = self.count(way);
        if count < COUNT_MAX {
            return self.with_count(way, count + 1);
        }
        let first = random as usize % WAYS;
        let other =
            (first..first + WAYS).map(|n| n % WAYS).find(|&other| other != way && self.count(other) != 0);
        other.map_or(self, |other| self.with_count(other, self.count(other) - 1))
    }

    /// The way with the fewest hits.
    pub fn coldest(self) -> usize {
        (0..WAYS).min_by_key(|&way| self.count(way)).unwrap_or(0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_changers_and_version_do_not_touch_each_other() {
        let mut head = Head(0);
        for way in 0..WAYS {
            head = head.with_count(way, way as u64);
        }
        head = head.with_change_begun().with_change_begun().locked().with_change_ended();
        assert_eq!((head.version(), head.changers(), head.is_locked()), (2, 1, true));
        assert!((0..WAYS).all(|way| head.count(way) == way as u64));
        assert_eq!(head.coldest(), 0);
    }

    #[test]
    fn a_full_count_takes_from_another() {
        let head = Head(0).with_count(2, COUNT_MAX).with_count(5, 3);
        for random in 0..7 {
            assert_eq!(head.with_hit(2, random), head.with_count(5, 2));
        }
        assert_eq!(Head(0).with_count(2, COUNT_MAX).with_hit(2, 1).count(2), COUNT_MAX);
        assert_eq!(head.with_hit(5, 0).count(5), 4);
    }

    #[test]
    fn too_many_changes_at_once_retire_the_line() {
        let mut head = Head(0).with_count(1, 3);
        for begun in 1..=CHANGERS_MAX {
            head = head.with_change_begun();
            assert_eq!(head.changers(), begun);
            assert!(!head.is_retired());
        }
        head = head.locked().with_change_begun();
        assert!(head.is_retired() && head.is_locked());
        assert_eq!(head.with_change_ended(), head);
        assert_eq!(head.with_change_begun(), head);
    }

    #[test]
    fn the_last_version_retires_the_line() {
        let mut head = Head((VERSION_MAX - 2) << VERSION_SHIFT).with_change_begun();
        assert!(!head.is_retired());
        head = head.with_change_ended().with_change_begun();
        assert!(head.is_retired());
    }
}
