//! Changes the limits of memory and disk space while the database is open.

use super::database::Db;
use crate::core::MemoryBudget;
use crate::error::Result;
use crate::settings_bounds::BYTES_MAX;
use alluvium_io::sync::Arc;
use alluvium_io::sync::atomic::Ordering;

impl Db {
    /// Changes [`crate::Builder::memory_bytes_max`]; `None` means no limit. Under a smaller limit, filters and indexes
    /// are dropped at once, buffers with the piece of work that uses them, and log segments as they are converted.
    /// Under a larger one, filters and indexes are loaded again as lookups need them.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`](crate::Error::MemoryLimit) if the limit is below the minimum; nothing is changed then.
    pub fn set_memory_bytes_max(&self, bytes: Option<u64>) -> Result<()> {
        let shared = self.shared();
        let bytes = bytes.map(|bytes| bytes.min(BYTES_MAX));
        let budget = MemoryBudget::new(bytes, shared.settings.segment_bytes_of_plan())?;
        let _only_one = shared.memory.changing.lock().expect("no panic while held");
        shared.memory.set(budget);
        shared.count_directories();
        shared.share_with_rows();
        shared.log.set_segment_bytes(budget.segment_bytes);
        shared.throttle.set_segment_bytes(budget.segment_bytes);
        Ok(())
    }

    /// Bounds filters and indexes alone, in bytes, below their share of the limit; [`u64::MAX`] means no bound of their
    /// own. Not kept: an opening and [`Db::set_memory_bytes_max`] give them their share of the limit again.
    ///
    /// If there is not room for all, those that save the fewest reads per byte are dropped first. A lookup in a table
    /// without its index reads the index, with the filter, before its page. A lookup without only the filter reads a
    /// page that the filter might have spared it. With a bound of 0, all are read from flash. Under a larger bound they
    /// are loaded again as lookups need them. [`crate::Stats::memory_limit`] counts what was dropped and what that
    /// costs.
    pub fn set_index_bytes_max(&self, bytes: u64) {
        let memory = &self.shared().memory;
        let _only_one = memory.changing.lock().expect("no panic while held");
        memory.index.set_bytes_max(bytes.min(memory.budget().index_bytes));
        self.shared().share_with_rows();
    }

    /// Bounds only the young items of one pass of a merge, and the buffers of ingests. For tests: even the smallest
    /// limit has room for many.
    #[doc(hidden)]
    pub fn set_merge_bytes_max(&self, bytes: u64) {
        let memory = &self.shared().memory;
        let _only_one = memory.changing.lock().expect("no panic while held");
        let (merge_bytes, spill_bytes) = (bytes.max(1), bytes);
        memory.budget.store(Arc::new(MemoryBudget { merge_bytes, spill_bytes, ..memory.budget() }));
    }

    /// Changes [`crate::Builder::disk_bytes_max`]; `None` means no limit.
    pub fn set_disk_bytes_max(&self, bytes_max: Option<u64>) {
        let shared = self.shared();
        shared.disk_quota.bytes_max.store(bytes_max.unwrap_or(0), Ordering::Relaxed);
        shared.measure_disk();
    }
}
