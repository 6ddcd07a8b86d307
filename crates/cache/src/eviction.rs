//! Which items make room for new ones.

/// An eviction policy over circular logs.
///
/// Miss ratios are those of `alluvium bench cache --trace zipf|scan|drift`: a million keys, room for a tenth of them
/// (decision 0030 tells the traces and the alternatives).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Eviction {
    /// S3-FIFO (Yang et al., SOSP 2023): a small log on probation, a main log whose items are reinserted while they are
    /// accessed, and a memory of keys that left probation. Resists scans, follows drift, and reads write nothing once a
    /// popular item's count is full. The default.
    ///
    /// Where we differ: one access on probation suffices for the main log, probation has 5 % instead of 10 % of the
    /// space, counts go up to 2 instead of 3, and the counts lie in the index's buckets instead of in the items.
    #[default]
    S3Fifo,
    /// What the circular log does by itself: the oldest item goes, whatever was read. The fastest writes, since an
    /// eviction touches neither index nor item.
    Fifo,
    /// The item goes that was not read or written for longest: a read moves its item to the tail of the log, unless it
    /// is among the youngest sixteenth. Reads beside a writer only note the item; the writer moves a sample of the
    /// noted ones. Former places take up space until the log comes round, a third of it when few items are used much;
    /// so prefer the approximation.
    Lru,
    /// An approximation of LRU after Lim's (thesis, §5.3.3): items that were used are appended again, but only when
    /// they are the oldest. So reads move nothing, also beside a writer, and no space is taken by former places; which
    /// gives no more misses than LRU itself (decision 0030). Lim moves items at once, and only those in the older half
    /// of the log.
    ApproximateLru,
}

/// Of the space for items, what S3-FIFO gives to probation.
pub(crate) const PROBATION_PERCENT: usize = 5;

/// Accesses counted at most per item. The index has room for 3.
pub(crate) const ACCESSES_MAX: u32 = 2;

/// Keys that left probation and are remembered, in percent of the items.
pub(crate) const GHOST_PERCENT: usize = 115;

impl Eviction {
    /// Whether there is a log for items on probation.
    pub(crate) fn has_probation(self) -> bool {
        self == Self::S3Fifo
    }

    /// Whether entries of evicted items stay in the index until somebody notices.
    pub(crate) fn leaves_entries(self) -> bool {
        self == Self::Fifo
    }

    /// Accesses that reads count per item, at most: all that they do for the policies for which this is not 0.
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
