//! The bounds of all numbers in [`Settings`]. A number beyond a bound counts as the bound, as documented at the methods
//! of [`crate::Builder`]; numbers that cannot work at all (a memory limit, a plan) are errors where they are used.

use std::time::Duration;

use crate::options::{Durability, Settings};
use crate::table::ITEM_BYTES_MAX;
use crate::table_sizes::TableSizes;

/// Maximum number of expected items: the plans' models are made for up to as many.
const EXPECTED_ITEMS_MAX: u64 = 1_000_000_000_000;
/// Intervals between syncs: shorter ones would keep a processor busy, longer ones have no use.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Minimum bytes of memory in which a part of an ingest is sorted.
const SORT_BYTES_MIN: u64 = 4 << 10;
/// Maximum size of files, buffers and garbage, so that sums of sizes do not overflow.
pub(crate) const BYTES_MAX: u64 = 1 << 50;
/// Maximum size of the row cache: what its parts can have.
const ROW_CACHE_BYTES_MAX: u64 = 1 << 44;
/// Minimum size of a table and a blob file, so that each has room for an item.
const FILE_BYTES_MIN: u64 = 4 << 10;

impl Settings {
    /// The settings with each number within its bounds.
    pub(crate) fn bounded(mut self) -> Self {
        self.expected_items = self.expected_items.min(EXPECTED_ITEMS_MAX);
        if let Durability::Interval(interval) = &mut self.durability {
            *interval = (*interval).clamp(INTERVAL_MIN, INTERVAL_MAX);
        }
        self.inline_bytes_max = self.inline_bytes_max.min(ITEM_BYTES_MAX);
        self.blob_file_bytes_max = self.blob_file_bytes_max.clamp(FILE_BYTES_MIN, BYTES_MAX);
        self.blob_aligned_bytes_min = self.blob_aligned_bytes_min.max(1);
        self.blob_garbage_bytes_min = self.blob_garbage_bytes_min.min(BYTES_MAX);
        self.garbage_bytes_min = self.garbage_bytes_min.min(BYTES_MAX);
        // No limit may be 0, which internally means no limit.
        self.memory_bytes_max = self.memory_bytes_max.map(|bytes| bytes.min(BYTES_MAX));
        self.row_cache_bytes_max = self.row_cache_bytes_max.map(|bytes| bytes.min(ROW_CACHE_BYTES_MAX));
        self.disk_bytes_max = self.disk_bytes_max.map(|bytes| bytes.max(1));
        self.background_bytes_per_s_max = self.background_bytes_per_s_max.map(|bytes| bytes.max(1));
        self.ingest_sort_bytes_max = self.ingest_sort_bytes_max.clamp(SORT_BYTES_MIN, BYTES_MAX);
        let TableSizes { bytes_min, bytes_max } = self.table_sizes;
        let bytes_max = bytes_max.clamp(FILE_BYTES_MIN, BYTES_MAX);
        // Smaller tables would be one per item where a merge is divided among many, and a version lists them all.
        self.table_sizes = TableSizes { bytes_min: bytes_min.clamp(FILE_BYTES_MIN, bytes_max), bytes_max };
        self
    }
}
