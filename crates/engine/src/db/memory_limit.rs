//! One limit for all memory: the counters of what it bounds, and changes of the limit.

use std::sync::Arc;

use alluvium_io::sync::ArcSwap;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use serde::Serialize;

use super::database::Db;
use super::memory_budget::MemoryBudget;
use super::operation_memory::OperationMemory;
use super::shared::Shared;
use crate::error::Result;
use crate::log::Refusal;
use crate::settings_bounds::BYTES_MAX;
use crate::table::{Degradation, IndexMemory, Loan, OutputOptions};

/// The budget in force, and the counters of what it bounds.
#[derive(Debug)]
pub(crate) struct MemoryControl {
    budget: ArcSwap<MemoryBudget>,
    pub index: Arc<IndexMemory>,
    /// The memory of reads in progress.
    pub operations: Arc<OperationMemory>,
}

impl MemoryControl {
    pub fn new(budget: MemoryBudget, index: Arc<IndexMemory>) -> Self {
        budget.take_effect();
        index.set_bytes_max(budget.index_bytes);
        let operations = OperationMemory::new(index.clone());
        operations.set_bytes_max(budget.operation_buffer_bytes, budget.iterator_bytes);
        index.reads.set_bytes_max(budget.index_read_bytes);
        Self { budget: ArcSwap::from_pointee(budget), index, operations }
    }

    /// The current maximum sizes of each part.
    pub fn budget(&self) -> MemoryBudget {
        **self.budget.load()
    }

    /// Takes `bytes` from the share of filters and indexes until the returned loan is dropped: for work that has no
    /// share of its own because it is rare. Does nothing without a limit.
    pub fn lend(&self, bytes: u64) -> Option<Loan> {
        self.budget().limit.map(|_| self.index.lend(bytes))
    }

    /// Gives back the freed memory that the allocator keeps, if there is a limit: each piece of background work leaves
    /// gaps in the arena of its thread, which would add up to megabytes.
    pub fn trim(&self) {
        if self.budget().limit.is_some() {
            alluvium_io::trim_freed_memory();
        }
    }

    fn set(&self, budget: MemoryBudget) {
        budget.take_effect();
        self.budget.store(Arc::new(budget));
        self.index.set_bytes_max(budget.index_bytes);
        self.operations.set_bytes_max(budget.operation_buffer_bytes, budget.iterator_bytes);
        self.index.reads.set_bytes_max(budget.index_read_bytes);
    }
}

/// The memory limit and what it costs: fail-graceful indexing (Lim et al., SOSP 2011, §4).
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MemoryLimitStats {
    /// The limit, in bytes; `None` if there is no limit.
    pub limit_bytes: Option<u64>,
    /// The bytes of it that filters and indexes may take.
    pub index_bytes_max: Option<u64>,
    /// Number of sections of hash runs whose filter is not in memory: dropped, or not used since the opening.
    pub sections_without_filter: u64,
    /// Number of sections whose index is not in memory: dropped, or not used since the opening.
    pub sections_without_index: u64,
    /// Number of filters dropped for lack of memory since the database was opened.
    pub filters_dropped: u64,
    /// Number of indexes dropped for lack of memory since the database was opened.
    pub indexes_dropped: u64,
    /// Number of reads of an index from flash for a single lookup, since the opening.
    pub index_reads: u64,
    /// Number of pages that lookups had to search for lack of a filter, since the opening.
    pub unfiltered_pages: u64,
    /// Number of damaged filters and indexes of tables that lookups did without, or that were rebuilt from the pages,
    /// which takes a read of the table. [`crate::Db::verify`] names them.
    pub damaged_blocks: u64,
}

impl MemoryLimitStats {
    /// The limits and the counts of degraded lookups. The caller adds the counts of sections.
    pub(super) fn of(shared: &Shared) -> Self {
        let Degradation { filters_dropped, indexes_dropped, index_reads, unfiltered_pages, damaged_blocks } =
            shared.memory.index.degradation();
        let index_bytes_max = shared.memory.index.bytes_max();
        Self {
            limit_bytes: shared.memory.budget().limit,
            index_bytes_max: Some(index_bytes_max).filter(|&bytes| bytes < u64::MAX),
            filters_dropped,
            indexes_dropped,
            index_reads,
            unfiltered_pages,
            damaged_blocks,
            ..Self::default()
        }
    }
}

impl Shared {
    /// Counts the buffers of a piece of background work as long as the returned value exists.
    pub fn hold_buffers(&self, bytes: u64) -> HeldMemory<'_> {
        HeldMemory::count(&self.buffer_bytes, bytes)
    }

    /// How merges write tables: with the buffers that the memory limit allows, and leaving as much of the device to the
    /// log as the reserve keeps.
    pub fn output_of_merges(&self) -> OutputOptions {
        self.output_leaving(self.reserve.bytes())
    }

    /// How conversions write tables: leaving less, because the log ends without them.
    pub fn output_of_conversions(&self) -> OutputOptions {
        self.output_leaving(self.reserve.bytes() / if self.reserve.is_taken() { 4 } else { 1 })
    }

    /// While the log refuses writes and the reserve keeps space for removals, background work may use all other space.
    fn output_leaving(&self, bytes: u64) -> OutputOptions {
        let is_full = matches!(self.log.refusal(), Some(Refusal::Full { .. }));
        let leave_bytes = if is_full && self.reserve.is_taken() { 0 } else { bytes };
        OutputOptions { write_bytes: self.memory.budget().write_bytes, leave_bytes }
    }

    /// Counts items collected for a merge as long as the returned value exists.
    pub fn hold_items(&self, bytes: u64) -> HeldMemory<'_> {
        HeldMemory::count(&self.merge_buffer_bytes, bytes)
    }
}

/// Memory that is counted as long as this exists.
#[derive(Debug)]
pub(crate) struct HeldMemory<'a> {
    counter: &'a AtomicU64,
    bytes: u64,
}

impl<'a> HeldMemory<'a> {
    fn count(counter: &'a AtomicU64, bytes: u64) -> Self {
        counter.fetch_add(bytes, Ordering::Relaxed);
        Self { counter, bytes }
    }
}

impl Drop for HeldMemory<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

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
        shared.memory.set(budget);
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
        memory.index.set_bytes_max(bytes.min(memory.budget().index_bytes));
    }

    /// Bounds only the young items of one pass of a merge, and the buffers of ingests. For tests: even the smallest
    /// limit has room for many.
    #[doc(hidden)]
    pub fn set_merge_bytes_max(&self, bytes: u64) {
        let memory = &self.shared().memory;
        let (merge_bytes, spill_bytes) = (bytes.max(1), bytes);
        memory.budget.store(Arc::new(MemoryBudget { merge_bytes, spill_bytes, ..memory.budget() }));
    }
}
