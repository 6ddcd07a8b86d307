//! [`TableLookups`]: how many lookups of a keyspace reach its tables, and how many find nothing there.

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Minimum lookups from which a share is taken.
const LOOKUPS_MIN: u64 = 100_000;
/// A share is taken from at least one lookup per this many items: a change of plan rewrites each item once.
const ITEMS_PER_LOOKUP: u64 = 8;
/// A share that differs by less than this from the one for which the plan was made is no reason for another plan.
const CHANGE_MIN: f64 = 0.2;

/// Lookups that tables answered: of keys that neither the log nor the row cache knows. Filters and indexes serve these
/// alone, so the share of absent keys among them is an input of automatic plans.
#[derive(Debug, Default)]
pub(crate) struct TableLookups {
    present: AtomicU64,
    absent: AtomicU64,
    /// The bits of the share of absent keys for which the plan was made last; 0 at first, as a new plan assumes.
    planned: AtomicU64,
}

impl TableLookups {
    /// Counts a lookup.
    #[inline]
    pub fn count(&self, is_present: bool) {
        let counter = if is_present { &self.present } else { &self.absent };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The share of absent keys for which the plan was made.
    pub fn planned_absent_share(&self) -> f64 {
        f64::from_bits(self.planned.load(Ordering::Relaxed))
    }

    /// The share of absent keys since the last plan, if it differs from that plan's and enough lookups were counted in
    /// a keyspace of this many items.
    pub fn changed_absent_share(&self, items: u64) -> Option<f64> {
        let (present, absent) = (self.present.load(Ordering::Relaxed), self.absent.load(Ordering::Relaxed));
        let lookups = present + absent;
        let share = absent as f64 / lookups.max(1) as f64;
        let is_known = lookups >= LOOKUPS_MIN.max(items / ITEMS_PER_LOOKUP);
        (is_known && (share - self.planned_absent_share()).abs() >= CHANGE_MIN).then_some(share)
    }

    /// Declares that a plan was made for this share, and counts from the beginning.
    pub fn set_planned(&self, absent_share: f64) {
        self.planned.store(absent_share.to_bits(), Ordering::Relaxed);
        self.present.store(0, Ordering::Relaxed);
        self.absent.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_counts_when_it_is_known_and_another() {
        let lookups = TableLookups::default();
        let count = |present: u64, absent: u64| {
            (0..present).for_each(|_| lookups.count(true));
            (0..absent).for_each(|_| lookups.count(false));
        };
        count(LOOKUPS_MIN / 2, LOOKUPS_MIN / 2 - 1);
        assert_eq!(lookups.changed_absent_share(0), None);
        count(0, 1);
        assert_eq!(lookups.changed_absent_share(0), Some(0.5));
        assert_eq!(lookups.changed_absent_share(LOOKUPS_MIN * ITEMS_PER_LOOKUP), Some(0.5));
        assert_eq!(lookups.changed_absent_share((LOOKUPS_MIN + 1) * ITEMS_PER_LOOKUP), None);
        lookups.set_planned(0.5);
        assert_eq!(lookups.changed_absent_share(0), None);
        count(LOOKUPS_MIN, LOOKUPS_MIN / 2);
        assert_eq!((lookups.changed_absent_share(0), lookups.planned_absent_share()), (None, 0.5));
        count(LOOKUPS_MIN, 0);
        assert_eq!(lookups.changed_absent_share(0), Some(0.2));
    }
}
