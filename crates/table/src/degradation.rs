//! [`Degradation`]: what lookups do without, and what is made anew.

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Effects of degraded indexing since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Degradation {
    /// Filters that were dropped, or were not kept in memory after they were written.
    pub filters_dropped: u64,
    /// Indexes that were dropped, or were not kept in memory after they were written.
    pub indexes_dropped: u64,
    /// Reads of filters and indexes for a single lookup each.
    pub index_reads: u64,
    /// Pages that lookups read because no filter was in memory to reject the key.
    pub unfiltered_pages: u64,
    /// Damaged filters and indexes that lookups worked without, or that were rebuilt from the pages.
    pub damaged_blocks: u64,
    /// Indexes that were made from the pages because the plan asks for other ones than are stored.
    pub indexes_made: u64,
    /// Pages that were read for them.
    pub pages_read_for_indexes: u64,
}

/// The same, while it is counted.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub filters_dropped: AtomicU64,
    pub indexes_dropped: AtomicU64,
    pub index_reads: AtomicU64,
    pub unfiltered_pages: AtomicU64,
    pub damaged_blocks: AtomicU64,
    pub indexes_made: AtomicU64,
    pub pages_read_for_indexes: AtomicU64,
}

impl Counts {
    /// The counts so far.
    pub fn now(&self) -> Degradation {
        Degradation {
            filters_dropped: self.filters_dropped.load(Ordering::Relaxed),
            indexes_dropped: self.indexes_dropped.load(Ordering::Relaxed),
            index_reads: self.index_reads.load(Ordering::Relaxed),
            unfiltered_pages: self.unfiltered_pages.load(Ordering::Relaxed),
            damaged_blocks: self.damaged_blocks.load(Ordering::Relaxed),
            indexes_made: self.indexes_made.load(Ordering::Relaxed),
            pages_read_for_indexes: self.pages_read_for_indexes.load(Ordering::Relaxed),
        }
    }
}
