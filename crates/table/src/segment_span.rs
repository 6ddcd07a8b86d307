//! [`SegmentSpan`]: the log segments from which the items of a section come.

use alluvium_base::SegmentId;

/// The log segments from which items of a section may come. Everything that segments up to the newest held for the
/// keyspace and range is in this section or in older ones, so the order of tables can be determined without a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentSpan {
    /// The oldest. It is above the newest if nothing was merged, only added (a bulk ingest). 0 means any.
    pub oldest: SegmentId,
    /// The newest; 0 if unknown.
    pub newest: SegmentId,
}

impl SegmentSpan {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self { oldest: SegmentId(0), newest: SegmentId(0) };
    /// No items.
    pub const EMPTY: Self = Self { oldest: SegmentId(u64::MAX), newest: SegmentId(0) };

    /// One segment.
    pub fn one(segment: SegmentId) -> Self {
        Self { oldest: segment, newest: segment }
    }

    /// The segments of both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { oldest: self.oldest.min(other.oldest), newest: self.newest.max(other.newest) }
    }

    /// Whether `segment` is one of them.
    #[inline]
    pub fn contains(&self, segment: SegmentId) -> bool {
        (self.oldest..=self.newest).contains(&segment)
    }
}
