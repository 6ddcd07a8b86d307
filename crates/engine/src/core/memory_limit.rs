//! One limit for all memory: the counters of what it bounds, and changes of the limit.

use std::sync::Arc;

use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{ArcSwap, Mutex};
use serde::{Deserialize, Serialize};

use super::directory_memory::DirectoryMemory;
use super::memory_budget::MemoryBudget;
use super::operation_memory::OperationMemory;
use super::shared::Shared;
use crate::log::Refusal;
use crate::table::{Degradation, IndexMemory, Loan, OutputOptions};

/// The budget in force, and the counters of what it bounds.
#[derive(Debug)]
pub(crate) struct MemoryControl {
    pub budget: ArcSwap<MemoryBudget>,
    pub index: Arc<IndexMemory>,
    /// The memory of reads in progress.
    pub operations: Arc<OperationMemory>,
    /// The memory of directories of chains.
    pub directories: DirectoryMemory,
    /// Held while limits change: all that follows from one change comes before all of the next.
    pub changing: Mutex<()>,
}

impl MemoryControl {
    pub fn new(budget: MemoryBudget, index: Arc<IndexMemory>) -> Self {
        budget.take_effect();
        index.set_bytes_max(budget.index_bytes);
        let operations = OperationMemory::new(index.clone());
        operations.set_bytes_max(budget.operation_buffer_bytes, budget.iterator_bytes);
        index.reads.set_bytes_max(budget.index_read_bytes);
        let (directories, changing) = (DirectoryMemory::default(), Mutex::new(()));
        Self { budget: ArcSwap::from_pointee(budget), index, operations, directories, changing }
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

    /// Changes all limits. The caller holds the lock of changes.
    pub fn set(&self, budget: MemoryBudget) {
        budget.take_effect();
        self.budget.store(Arc::new(budget));
        self.index.set_bytes_max(budget.index_bytes);
        self.operations.set_bytes_max(budget.operation_buffer_bytes, budget.iterator_bytes);
        self.index.reads.set_bytes_max(budget.index_read_bytes);
    }
}

/// The memory limit and what it costs: fail-graceful indexing (Lim et al., SOSP 2011, §4).
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
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
    /// Number of indexes that were made from the pages of tables since the opening, because the plan asks for other
    /// ones than are stored ([`crate::Db::change_plan`]). Nothing is written for them.
    pub indexes_made: u64,
    /// Number of pages that were read for them.
    pub pages_read_for_indexes: u64,
    /// Number of tables whose index can still be made so, and for which memory has room.
    pub indexes_left: u64,
}

impl MemoryLimitStats {
    /// The limits and the counts of degraded lookups. The caller adds the counts of sections.
    pub(crate) fn of(shared: &Shared) -> Self {
        let Degradation {
            filters_dropped,
            indexes_dropped,
            index_reads,
            unfiltered_pages,
            damaged_blocks,
            indexes_made,
            pages_read_for_indexes,
        } = shared.memory.index.degradation();
        let index_bytes_max = shared.memory.index.bytes_max();
        Self {
            limit_bytes: shared.memory.budget().limit,
            index_bytes_max: Some(index_bytes_max).filter(|&bytes| bytes < u64::MAX),
            filters_dropped,
            indexes_dropped,
            index_reads,
            unfiltered_pages,
            damaged_blocks,
            indexes_made,
            pages_read_for_indexes,
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
