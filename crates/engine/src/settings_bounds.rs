//! The bounds of all numbers in [`Settings`], in one place. What is beyond one counts as the bound, as the methods of
//! [`crate::Builder`] say; what can't work at all is an error where it is used: a memory limit, a plan.

use std::time::Duration;

use crate::compact::TableSizes;
use crate::options::{Durability, Settings};
use crate::table::ITEM_BYTES_MAX;

/// Items that may be expected: as many as the plans' models are made for.
const EXPECTED_ITEMS_MAX: u64 = 1_000_000_000_000;
/// Intervals between syncs: shorter ones would keep a processor busy, longer ones are none.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
const INTERVAL_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Memory in which a part of an ingest is sorted.
const SORT_BYTES_MIN: u64 = 4 << 10;
/// Any size of files, buffers and garbage, so that sums of them stay numbers.
pub(crate) const BYTES_MAX: u64 = 1 << 50;
/// A table and a blob file hold something.
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
        // None of the limits may be 0, which stands for none inside.
        self.memory_bytes_max = self.memory_bytes_max.map(|bytes| bytes.min(BYTES_MAX));
        self.disk_bytes_max = self.disk_bytes_max.map(|bytes| bytes.max(1));
        self.background_bytes_per_s_max = self.background_bytes_per_s_max.map(|bytes| bytes.max(1));
        self.ingest_sort_bytes_max = self.ingest_sort_bytes_max.clamp(SORT_BYTES_MIN, BYTES_MAX);
        let TableSizes { bytes_min, bytes_max } = self.table_sizes;
        let bytes_max = bytes_max.clamp(FILE_BYTES_MIN, BYTES_MAX);
        self.table_sizes = TableSizes { bytes_min: bytes_min.clamp(1, bytes_max), bytes_max };
        self
    }
}
