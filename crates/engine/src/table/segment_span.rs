//! [`SegmentSpan`]: which log segments the items of a section are from.

/// The log segments that items of a section may be from. Everything that segments up to the newest held for the
/// keyspace and range is in this section or in older ones; so the order of tables can be told without a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSpan {
    /// The oldest; above the newest where nothing is merged, only added (a bulk ingest). 0: any.
    pub oldest: u64,
    /// The newest; 0 where that is unknown.
    pub newest: u64,
}

impl SegmentSpan {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { oldest: 0, newest: 0 };
    /// No items.
    pub const EMPTY: Self = Self { oldest: u64::MAX, newest: 0 };

    /// One segment.
    pub fn one(segment: u64) -> Self {
        Self { oldest: segment, newest: segment }
    }

    /// What items of either are from.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { oldest: self.oldest.min(other.oldest), newest: self.newest.max(other.newest) }
    }

    /// Whether `segment` is one of them.
    pub fn contains(&self, segment: u64) -> bool {
        (self.oldest..=self.newest).contains(&segment)
    }
}
