//! Which items make room for new ones.

/// An eviction policy over circular logs.
///
/// Miss ratios are those of `alluvium bench cache --trace zipf|scan|drift`: a million keys, room for a tenth of them
/// (decision 0030 describes the traces and the alternatives).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// S3-FIFO (Yang et al., SOSP 2023): a small probation log, a main log whose items are reinserted as long as they
    /// are accessed, and a memory of keys that left probation. It resists scans and follows drift, and reads write
    /// nothing once a popular item's count is at its maximum. The default.
    ///
    /// Differences from the paper: one access on probation suffices for the main log, probation has 5 % instead of 10 %
    /// of the space, counts go up to 2 instead of 3, and the counts are stored in the index's buckets instead of in the
    /// items.
    #[default]
    S3Fifo,
    /// The natural policy of a circular log: evicts the oldest item, no matter what was read. Writes are fastest, since
    /// an eviction touches neither index nor item.
    Fifo,
    /// Evicts the item that was not read or written for the longest time: a read moves its item to the tail of the log,
    /// unless it is among the youngest sixteenth. Reads beside a writer only note the item; the writer moves a sample
    /// of the noted ones. Former positions take up space until the log wraps around, up to a third of it when a few
    /// items are used often; so prefer the approximation.
    Lru,
    /// An approximation of LRU after Lim's (thesis, §5.3.3): items that were used are appended again, but only when
    /// they are the oldest. So reads never move items, also beside a writer, and former positions take no space. It has
    /// no more misses than LRU itself (decision 0030). Lim moves items at once, and only those in the older half of the
    /// log.
    ApproximateLru,
}

/// Percentage of the space for items that S3-FIFO gives to probation.
pub(crate) const PROBATION_PERCENT: usize = 5;

/// Maximum accesses counted per item. The index has room for 3.
pub(crate) const ACCESSES_MAX: u32 = 2;

/// Number of keys that are remembered after they left probation, in percent of the items.
pub(crate) const GHOST_PERCENT: usize = 115;

impl Eviction {
    /// Whether there is a log for items on probation.
    pub(crate) fn has_probation(self) -> bool {
        self == Self::S3Fifo
    }

    /// Whether entries of evicted items stay in the index until an operation finds them stale.
    pub(crate) fn leaves_entries(self) -> bool {
        self == Self::Fifo
    }

    /// Maximum accesses that reads count per item. Where this is not 0, counting is all that reads do for the policy.
    #[inline(always)]
    pub(crate) fn counted_max(self) -> u32 {
        match self {
            Self::S3Fifo => ACCESSES_MAX,
            // An item that was used is appended again when it is the oldest.
            Self::ApproximateLru => 1,
            Self::Fifo | Self::Lru => 0,
        }
    }

    /// Whether reads move items.
    pub(crate) fn moves_items(self) -> bool {
        self == Self::Lru
    }
}
