//! [`MemoryBudget`]: how a memory limit is divided among the parts of the engine.

use alluvium_model::LogSpec;

use super::PIECE_BYTES;
use crate::blob::GATHER_BYTES;
use crate::blob::frame::CHUNK_BYTES;
use crate::error::{Error, Result};
use crate::options::Settings;
use crate::table::{PAGE_BYTES, READ_AHEAD_BYTES, READS_AHEAD_MAX, WRITE_BYTES, WRITES_MAX};

/// The minimum limit. Below it, the largest batch of one item would not fit in a log segment.
pub(crate) const MEMORY_BYTES_MIN: u64 = 4 << 20;
/// Maximum number of segments that wait for conversion before writers wait for it, without a limit and with one.
const FROZEN_MAX: usize = 3;
const FROZEN_MAX_LIMITED: usize = 2;
/// Minimum bytes of log per entry of its index: the memory reserved for the index is enough for items of this size.
const LOG_BYTES_PER_ENTRY: u64 = 32;
/// Maximum pages of one `multi_get` in flight together, and the minimum of that under any limit.
const PAGES_IN_FLIGHT_MAX: usize = 128;
const PAGES_IN_FLIGHT_MIN: usize = 8;
/// Maximum bytes of items that scans have collected, without a limit.
const SCAN_BYTES_MAX: u64 = 32 << 20;
/// The limit divided by this is what the pages of one `multi_get` in flight may take: some tens of calls may run at
/// once.
const LOOKUP_SHARE: u64 = 512;

/// Maximum bytes of freed buffers that each thread keeps for its next read, under a limit.
const POOLED_BYTES_MAX: usize = 32 << 10;

/// Returns the maximum number of resident bytes of a process beyond [`crate::Builder::memory_bytes_max`], if `threads`
/// threads use a database of `keyspaces` keyspaces. The sum has three parts:
///
/// - 8 MiB for the database's own threads and the allocator
/// - 512 KiB for each thread: its stack, the buffers of one lookup, its io_uring, its freed memory in the allocator
/// - 4 KiB for each keyspace
///
/// The sum does not include the program's code, memory that the program allocates (values that the database returned to
/// it included), and the part of [`crate::MemoryStats::tables`] that exceeds a quarter of the limit: half a kibibyte
/// for each section of a table (one for each run of each keyspace), one kibibyte for each table.
pub fn resident_bytes_beyond_limit(threads: usize, keyspaces: usize) -> u64 {
    BEYOND_LIMIT_BYTES + threads as u64 * BYTES_PER_THREAD + keyspaces as u64 * BYTES_PER_KEYSPACE
}

// Measured with `cargo xtask memory`.
const BEYOND_LIMIT_BYTES: u64 = 8 << 20;
const BYTES_PER_THREAD: u64 = 512 << 10;
const BYTES_PER_KEYSPACE: u64 = 4 << 10;

/// The shares of the parts, in 128ths of the limit. The remaining 45 are for filters and indexes, and more of a large
/// limit.
mod share {
    /// The active segment. The segments that may be frozen, and the start of the next, take as much each.
    pub const SEGMENT: u64 = 8;
    /// Log indexes of all segments.
    pub const LOG_INDEX: u64 = 8;
    /// One read or write of a merge or a conversion.
    pub const PIECE: u64 = 1;
    /// Young items of one pass of a merge.
    pub const MERGE: u64 = 16;
    /// A bulk ingest, besides the share of merges; taken from filters and indexes.
    pub const SPILL: u64 = 16;
    /// A piece of a large item; also taken from filters and indexes.
    pub const BLOB: u64 = 2;
    /// Buffers of reads in progress: pages of `multi_get`, pieces of large values, reads of iterators.
    pub const OPERATION_BUFFERS: u64 = 8;
    /// Filters and indexes that lookups read but do not keep.
    pub const INDEX_READS: u64 = 2;
    /// What iterators keep between two calls; taken from filters and indexes.
    pub const ITERATORS: u64 = 32;
    /// What is not counted: the allocator's overhead.
    pub const RESERVE: u64 = 6;
}
const SHARES: u64 = 128;

/// Bytes beyond which a larger share gains nothing. What large limits leave is for filters and indexes.
mod share_bytes_max {
    pub const MERGE: u64 = 32 << 20;
    pub const OPERATION_BUFFERS: u64 = 16 << 20;
    pub const INDEX_READS: u64 = 4 << 20;
}

/// Maximum sizes of each part of the engine. Without a limit, these are the best sizes for speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryBudget {
    /// The limit.
    pub limit: Option<u64>,
    /// Bytes of a log segment.
    pub segment_bytes: u64,
    /// Maximum number of segments that wait for conversion.
    pub frozen_max: usize,
    /// Maximum entries of all shards of a log index together; beyond that, the log freezes.
    pub log_entries_max: u64,
    /// Bytes of one read of a merge.
    pub read_bytes: usize,
    /// Bytes of one write of a merge or conversion.
    pub write_bytes: usize,
    /// Bytes of the young items that a merge collects at once, including what sorts them.
    pub merge_bytes: u64,
    /// Pages of one `multi_get` in flight together.
    pub pages_in_flight: usize,
    /// Bytes of a bulk ingest's buffers, taken from filters and indexes while it lasts.
    pub spill_bytes: u64,
    /// Bytes of key and value from which on a large item is read and written in pieces.
    pub blob_whole_bytes: u64,
    /// Bytes of large items that accumulate before they are written to a blob file.
    pub blob_gather_bytes: usize,
    /// Bytes of one piece of an item that is read and written in pieces: whole chunks.
    pub blob_piece_bytes: usize,
    /// Bytes of filters and indexes.
    pub index_bytes: u64,
    /// Bytes of the buffers of all reads in progress together.
    pub operation_buffer_bytes: u64,
    /// Bytes of filters and indexes that are being read, as stored and as decoded.
    pub index_read_bytes: u64,
    /// Bytes that all iterators keep together, taken from filters and indexes.
    pub iterator_bytes: u64,
}

impl MemoryBudget {
    /// The budget of the parts under `limit`. A segment is never larger than `segment_bytes`, which is the plan's size.
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] if the limit is below the minimum.
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
                spill_bytes: u64::MAX,
                blob_whole_bytes: u64::MAX,
                blob_gather_bytes: GATHER_BYTES,
                blob_piece_bytes: PIECE_BYTES,
                index_bytes: u64::MAX,
                operation_buffer_bytes: u64::MAX,
                index_read_bytes: u64::MAX,
                iterator_bytes: u64::MAX,
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
            merge_bytes: part(share::MERGE).min(share_bytes_max::MERGE),
            pages_in_flight: ((bytes / LOOKUP_SHARE) as usize / PAGE_BYTES)
                .clamp(PAGES_IN_FLIGHT_MIN, PAGES_IN_FLIGHT_MAX),
            spill_bytes: part(share::SPILL),
            blob_whole_bytes: part(share::BLOB).max(CHUNK_BYTES as u64),
            blob_gather_bytes: piece.min(GATHER_BYTES),
            blob_piece_bytes: (part(share::BLOB) / CHUNK_BYTES as u64 * CHUNK_BYTES as u64)
                .clamp(CHUNK_BYTES as u64, PIECE_BYTES as u64) as usize,
            index_bytes: 0,
            operation_buffer_bytes: part(share::OPERATION_BUFFERS).min(share_bytes_max::OPERATION_BUFFERS),
            index_read_bytes: part(share::INDEX_READS).min(share_bytes_max::INDEX_READS),
            iterator_bytes: part(share::ITERATORS),
        };
        let reserved = budget.log_bytes()
            + part(share::LOG_INDEX).min(segment_bytes)
            + budget.buffer_bytes()
            + budget.merge_bytes
            + budget.operation_buffer_bytes
            + budget.index_read_bytes
            + part(share::RESERVE);
        budget.index_bytes = bytes.saturating_sub(reserved);
        Ok(budget)
    }

    /// Bounds the freed memory that the allocator keeps: it could double the limit otherwise.
    pub(crate) fn take_effect(&self) {
        if self.limit.is_some() {
            alluvium_io::give_back_freed_memory();
            alluvium_io::bound_pooled_bytes(POOLED_BYTES_MAX);
        }
    }

    /// Bytes of all segments: active, frozen, and the next, which is begun before it is needed.
    fn log_bytes(&self) -> u64 {
        self.segment_bytes * (self.frozen_max as u64 + 2)
    }

    /// The number of chunks of a large item that are read at once.
    pub fn blob_piece_chunks(&self) -> u64 {
        (self.blob_piece_bytes / CHUNK_BYTES) as u64
    }

    /// The number of large values that one call reads together, at most `most`.
    pub fn large_in_flight(&self, most: usize) -> usize {
        match self.limit {
            Some(_) => (self.operation_buffer_bytes as usize / 4 / self.blob_piece_bytes).clamp(1, most),
            None => most,
        }
    }

    /// Bytes of one read of each of `sequences` sequences of tables that are merged together: whole pages. Without a
    /// limit, each of up to four sequences may read as much as a single one; with more, all read less.
    pub fn read_bytes_each(&self, sequences: usize) -> usize {
        let together = if self.limit.is_some() { self.read_bytes } else { 4 * self.read_bytes };
        let each = (together / sequences.max(1)).min(self.read_bytes);
        (each / PAGE_BYTES).max(1) * PAGE_BYTES
    }

    /// Maximum bytes of items that scans have collected for their next calls, based on the share of merges. All scans
    /// together may have as much as one alone.
    pub fn scan_bytes(&self) -> u64 {
        (self.merge_bytes / 4).min(SCAN_BYTES_MAX)
    }

    /// Bytes of the buffers of a merge.
    pub fn merge_buffer_bytes(&self) -> usize {
        self.read_bytes * READS_AHEAD_MAX + self.write_bytes * WRITES_MAX
    }

    /// Bytes of the buffers of a merge and a conversion at the same time.
    pub fn buffer_bytes(&self) -> u64 {
        (self.merge_buffer_bytes() + self.write_bytes * WRITES_MAX) as u64
    }
}

impl Settings {
    /// The budget for these settings.
    pub fn memory_budget(&self) -> Result<MemoryBudget> {
        let limit = self.memory_bytes_max.map(|bytes| bytes.saturating_sub(self.program_bytes));
        MemoryBudget::new(limit, self.segment_bytes_of_plan()).map_err(|error| match error {
            Error::MemoryLimit { limit, min } => Error::MemoryLimit {
                limit: self.memory_bytes_max.unwrap_or(limit),
                min: min + self.program_bytes,
            },
            other => other,
        })
    }
}

/// The size of a log segment that the planner assumes.
pub(crate) fn default_segment_bytes() -> u64 {
    LogSpec::default().segment_bytes_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_never_exceed_the_limit() {
        for limit in [4 << 20, 5_000_001, 8 << 20, 16 << 20, 64 << 20, 1 << 30, 1 << 40] {
            let budget = MemoryBudget::new(Some(limit), 64 << 20).unwrap();
            let log_index = (limit / SHARES * share::LOG_INDEX).min(budget.segment_bytes);
            let parts = budget.log_bytes()
                + log_index
                + budget.buffer_bytes()
                + budget.merge_bytes
                + budget.index_bytes;
            assert!(parts <= limit, "{budget:?}");
            // At least a quarter is for filters and indexes.
            assert!(budget.index_bytes >= limit / 4, "{budget:?}");
            // At most six and a half bytes per entry, in the segments of the reservation.
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
