//! [`EntryBound`]: how many items a shard of a log store indexes before the log freezes.

use alluvium_io::sync::atomic::{AtomicUsize, Ordering};

/// A bound that the plan sets, and that is raised step by step where items live for a short time
/// ([decision 0058](../../../../docs/decisions/0058-what-dies-in-the-log-stays-there.md)).
#[derive(Debug)]
pub(crate) struct EntryBound {
    planned: usize,
    max: usize,
    now: AtomicUsize,
}

impl EntryBound {
    /// A bound of `planned` entries that may be raised to `max`.
    pub fn new(planned: usize, max: usize) -> Self {
        Self { planned, max: max.max(planned), now: AtomicUsize::new(planned) }
    }

    /// The bound that the plan sets.
    pub fn planned(&self) -> usize {
        self.planned
    }

    #[inline]
    pub fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    /// Whether it was raised.
    pub fn is_raised(&self) -> bool {
        self.now() > self.planned
    }

    pub fn may_rise(&self) -> bool {
        self.now() < self.max
    }

    /// Doubles the bound of a shard that has reached it. Another shard may have done so before.
    pub fn raise(&self, reached: usize) {
        let raised = (2 * reached).min(self.max);
        let _ = self.now.compare_exchange(reached, raised, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_its_maximum() {
        let bound = EntryBound::new(100, 350);
        assert!(!bound.is_raised() && bound.may_rise());
        bound.raise(100);
        bound.raise(100);
        assert_eq!((bound.now(), bound.planned()), (200, 100));
        bound.raise(200);
        assert!(bound.is_raised() && !bound.may_rise());
        assert_eq!(bound.now(), 350);
        assert!(!EntryBound::new(100, 0).may_rise());
    }
}
