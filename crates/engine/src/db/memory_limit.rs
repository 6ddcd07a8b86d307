//! One limit for all memory: what each part gets of it, and how it is changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_model::LogSpec;
use arc_swap::ArcSwap;
use serde::Serialize;

use super::database::Db;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::options::Settings;
use crate::table::{
    Degradation, IndexMemory, PAGE_BYTES, READ_AHEAD_BYTES, READS_AHEAD_MAX, WRITE_BYTES, WRITES_MAX,
};

/// The smallest limit that works: below it a log segment would not hold its largest batch of one item.
pub(crate) const MEMORY_BYTES_MIN: u64 = 4 << 20;
/// Segments that may wait for conversion before writers wait for it, without a limit and with one.
const FROZEN_MAX: usize = 3;
const FROZEN_MAX_LIMITED: usize = 2;
/// Bytes of log for one entry of its index, at most: what is reserved for the index suffices for items of this size.
const LOG_BYTES_PER_ENTRY: u64 = 32;
/// Most pages of one multi_get that are in flight together, and how many there are however short memory is.
const PAGES_IN_FLIGHT_MAX: usize = 128;
const PAGES_IN_FLIGHT_MIN: usize = 8;
/// What part of the limit one multi_get takes for them: there may be some tens at once.
const LOOKUP_SHARE: u64 = 512;

/// The shares of the parts, in 128ths of the limit. What is left, 45, is for filters and indexes.
mod share {
    /// The active segment. There are as many more as may be frozen, and the start of the next.
    pub const SEGMENT: u64 = 8;
    /// Log indexes of all segments.
    pub const LOG_INDEX: u64 = 8;
    /// One read or write of a merge or conversion.
    pub const PIECE: u64 = 1;
    /// Young items of one pass of a merge.
    pub const MERGE: u64 = 16;
    /// What is not counted: stacks, pages of lookups under way, the allocator's slack.
    pub const RESERVE: u64 = 16;
}
const SHARES: u64 = 128;

/// What each part of the engine may take. Without a limit these are the sizes that are best for speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    /// The limit.
    pub limit: Option<u64>,
    /// A log segment.
    pub segment_bytes: u64,
    /// Segments that may wait for conversion.
    pub frozen_max: usize,
    /// Entries of all shards of a log index together, at most; then the log freezes.
    pub log_entries_max: u64,
    /// Bytes of one read of a merge.
    pub read_bytes: usize,
    /// Bytes of one write of a merge or conversion.
    pub write_bytes: usize,
    /// Young items gathered at once by a merge, with what sorts them.
    pub merge_bytes: u64,
    /// Pages of one multi_get in flight together.
    pub pages_in_flight: usize,
    /// Filters and indexes.
    pub index_bytes: u64,
}

impl MemoryBudget {
    /// What the parts get of `limit`; a segment is never larger than `segment_bytes`, the plan's.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] for a limit below the minimum.
    pub fn new(limit: Option<u64>, segment_bytes: u64) -> Result<Self> {
        let Some(bytes) = limit else {
            return Ok(Self {
                limit,
                segment_bytes,
                frozen_max: FROZEN_MAX,
                log_entries_max: u64::MAX,
                read_bytes: READ_AHEAD_BYTES,
                write_bytes: WRITE_BYTES,
                merge_bytes: u64::MAX,
                pages_in_flight: PAGES_IN_FLIGHT_MAX,
                index_bytes: u64::MAX,
            });
        };
        if bytes < MEMORY_BYTES_MIN {
            return Err(Error::MemoryLimit { limit: bytes, min: MEMORY_BYTES_MIN });
        }
        let part = |shares: u64| bytes / SHARES * shares;
        let whole_pages = |bytes: u64| (bytes / 4096 * 4096).max(4096);
        let segment_bytes = whole_pages(part(share::SEGMENT)).min(segment_bytes);
        let piece = whole_pages(part(share::PIECE)) as usize;
        let mut budget = Self {
            limit,
            segment_bytes,
            frozen_max: FROZEN_MAX_LIMITED,
            log_entries_max: segment_bytes / LOG_BYTES_PER_ENTRY,
            read_bytes: piece.min(READ_AHEAD_BYTES),
            write_bytes: piece.min(WRITE_BYTES),
            merge_bytes: part(share::MERGE),
            pages_in_flight: ((bytes / LOOKUP_SHARE) as usize / PAGE_BYTES)
                .clamp(PAGES_IN_FLIGHT_MIN, PAGES_IN_FLIGHT_MAX),
            index_bytes: 0,
        };
        let reserved = budget.log_bytes()
            + part(share::LOG_INDEX)
            + budget.buffer_bytes()
            + budget.merge_bytes
            + part(share::RESERVE);
        budget.index_bytes = bytes.saturating_sub(reserved);
        Ok(budget)
    }

    /// A limit that the allocator doubles would be none.
    fn take_effect(&self) {
        if self.limit.is_some() {
            alluvium_io::give_back_freed_memory();
        }
    }

    /// All segments: active, frozen, and the next, which is begun before it is needed.
    fn log_bytes(&self) -> u64 {
        self.segment_bytes * (self.frozen_max as u64 + 2)
    }

    /// Buffers of a merge and a conversion at the same time.
    pub fn buffer_bytes(&self) -> u64 {
        (self.read_bytes * READS_AHEAD_MAX + 2 * self.write_bytes * WRITES_MAX) as u64
    }
}

/// The budget in force, and the counts of what it bounds.
#[derive(Debug)]
pub(crate) struct MemoryControl {
    budget: ArcSwap<MemoryBudget>,
    pub index: Arc<IndexMemory>,
}

impl MemoryControl {
    pub fn new(budget: MemoryBudget, index: Arc<IndexMemory>) -> Self {
        budget.take_effect();
        index.set_bytes_max(budget.index_bytes);
        Self { budget: ArcSwap::from_pointee(budget), index }
    }

    /// What each part may take now.
    pub fn budget(&self) -> MemoryBudget {
        **self.budget.load()
    }

    fn set(&self, budget: MemoryBudget) {
        budget.take_effect();
        self.budget.store(Arc::new(budget));
        self.index.set_bytes_max(budget.index_bytes);
    }
}

/// The memory limit and what it costs: fail-graceful indexing (Lim et al., SOSP 2011, §4).
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct MemoryLimitStats {
    /// The limit, in bytes; `None` without one.
    pub limit_bytes: Option<u64>,
    /// What filters and indexes may take of it.
    pub index_bytes_max: Option<u64>,
    /// Sections of hash runs whose filter is not in memory: dropped, or not used since the opening.
    pub sections_without_filter: u64,
    /// Sections whose index is not in memory: dropped, or not used since the opening.
    pub sections_without_index: u64,
    /// Filters dropped for want of memory since the database was opened.
    pub filters_dropped: u64,
    /// Indexes dropped likewise.
    pub indexes_dropped: u64,
    /// Reads of an index from flash that served one lookup, since the opening.
    pub index_reads: u64,
    /// Pages that lookups had to look at for want of a filter, since the opening.
    pub unfiltered_pages: u64,
}

impl MemoryLimitStats {
    /// The limits and the counts of degraded lookups; those of sections are the caller's.
    pub(super) fn of(shared: &Shared) -> Self {
        let Degradation { filters_dropped, indexes_dropped, index_reads, unfiltered_pages } =
            shared.memory.index.degradation();
        let index_bytes_max = shared.memory.index.bytes_max();
        Self {
            limit_bytes: shared.memory.budget().limit,
            index_bytes_max: Some(index_bytes_max).filter(|&bytes| bytes < u64::MAX),
            filters_dropped,
            indexes_dropped,
            index_reads,
            unfiltered_pages,
            ..Self::default()
        }
    }
}

impl Shared {
    /// Counts the buffers of a piece of background work for as long as what is returned lives.
    pub fn hold_buffers(&self, bytes: u64) -> HeldMemory<'_> {
        HeldMemory::count(&self.buffer_bytes, bytes)
    }

    /// Counts items gathered for a merge likewise.
    pub fn hold_items(&self, bytes: u64) -> HeldMemory<'_> {
        HeldMemory::count(&self.merge_buffer_bytes, bytes)
    }
}

/// Memory that is counted while this lives.
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
    /// Changes [`crate::Builder::memory_bytes_max`]; `None` is no limit. Under a smaller limit filters and indexes go
    /// at once, buffers with the piece of work that uses them, and log segments as they are converted. Under a larger
    /// one filters and indexes come back as lookups need them.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`], with nothing changed, for a limit that is too small to work with.
    pub fn set_memory_bytes_max(&self, bytes: Option<u64>) -> Result<()> {
        let shared = self.shared();
        let budget = MemoryBudget::new(bytes, shared.settings.segment_bytes_of_plan())?;
        shared.memory.set(budget);
        shared.log.set_segment_bytes(budget.segment_bytes);
        shared.throttle.set_segment_bytes(budget.segment_bytes);
        Ok(())
    }

    /// Bounds filters and indexes alone, below what the limit leaves them. For tests: the smallest limit has room for
    /// the indexes of millions of items.
    #[doc(hidden)]
    pub fn set_index_bytes_max(&self, bytes: u64) {
        let memory = &self.shared().memory;
        memory.index.set_bytes_max(bytes.min(memory.budget().index_bytes));
    }

    /// Bounds the young items of one pass of a merge alone, for the same reason.
    #[doc(hidden)]
    pub fn set_merge_bytes_max(&self, bytes: u64) {
        let memory = &self.shared().memory;
        memory.budget.store(Arc::new(MemoryBudget { merge_bytes: bytes.max(1), ..memory.budget() }));
    }
}

impl Settings {
    /// The budget that these settings ask for.
    pub fn memory_budget(&self) -> Result<MemoryBudget> {
        MemoryBudget::new(self.memory_bytes_max, self.segment_bytes_of_plan())
    }
}

/// The log segment that the planner assumes.
pub(super) fn default_segment_bytes() -> u64 {
    LogSpec::default().segment_bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_never_exceed_the_limit() {
        for limit in [4 << 20, 5_000_001, 8 << 20, 16 << 20, 64 << 20, 1 << 30, 1 << 40] {
            let budget = MemoryBudget::new(Some(limit), 64 << 20).unwrap();
            let log_index = limit / SHARES * share::LOG_INDEX;
            let parts = budget.log_bytes()
                + log_index
                + budget.buffer_bytes()
                + budget.merge_bytes
                + budget.index_bytes;
            assert!(parts <= limit, "{budget:?}");
            // A quarter at least finds items.
            assert!(budget.index_bytes >= limit / 4, "{budget:?}");
            // Six bytes and a half for an entry at most, in the segments of the reservation.
            assert!(
                budget.log_entries_max * 13 / 2 * (budget.frozen_max as u64 + 1) <= log_index,
                "{budget:?}"
            );
        }
    }

    #[test]
    fn a_limit_below_the_minimum_is_refused_with_the_minimum() {
        let refused = MemoryBudget::new(Some(MEMORY_BYTES_MIN - 1), 64 << 20).unwrap_err();
        assert!(matches!(refused, Error::MemoryLimit { min: MEMORY_BYTES_MIN, .. }), "{refused}");
        let unlimited = MemoryBudget::new(None, 64 << 20).unwrap();
        assert_eq!((unlimited.segment_bytes, unlimited.index_bytes), (64 << 20, u64::MAX));
    }
}
