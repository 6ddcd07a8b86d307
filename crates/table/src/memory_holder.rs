//! [`MemoryHolder`]: what [`IndexMemory`](crate::index_memory::IndexMemory) can ask to drop parts of itself.

use std::fmt::Debug;

/// Holds filter, index and pages in memory, and can drop them.
pub(crate) trait MemoryHolder: Debug + Send + Sync {
    /// The parts in memory that can be dropped.
    fn parts(&self) -> [Option<Part>; 3];

    /// Drops a part. Returns `false` if it is not there, or is being loaded.
    fn drop_part(&self, part: Part) -> bool;
}

/// A part of what a holder has in memory that can be dropped in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Part {
    /// Reads that it saves, per lookup of the whole hash space and per byte.
    pub worth: f64,
    /// Minimum bytes of memory that become free.
    pub bytes: u64,
    /// Whether the filter is dropped.
    pub has_filter: bool,
    /// Whether the index is dropped, and the filter with it.
    pub has_index: bool,
    /// Whether the pages are dropped, and nothing else.
    pub has_pages: bool,
}
