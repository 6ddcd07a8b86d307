//! [`IteratorShare`]: the memory that an iterator may use under a memory limit.

use crate::core::{IteratorMemory, MemoryBudget, Shared};
use crate::error::Result;
use crate::level::Version;
use crate::table::{HeldRoom, PAGE_BYTES, READS_AHEAD_MAX};

/// Number of items collected in memory at a time; fewer if memory is short.
const CHUNK_ITEMS: u64 = 4096;
const CHUNK_ITEMS_MIN: u64 = 16;
/// Bytes of a chunk's item besides its key and value.
const CHUNK_ITEM_BYTES: u64 = 128;
/// Bytes that say where one item of the log is.
const LOGGED_BYTES: u64 = 32;
/// Minimum memory with which an iterator works.
const LEAST_BYTES: u64 = 16 << 10;

/// The share of one iterator: taken when it first reads, given back when it ends or is dropped.
#[derive(Debug, Default)]
pub(super) struct IteratorShare(Option<IteratorMemory>);

impl IteratorShare {
    /// Takes the share unless it was taken already.
    ///
    /// # Errors
    /// [`crate::Error::MemoryBusy`] if other iterators leave too little.
    pub fn take(&mut self, shared: &Shared, budget: &MemoryBudget) -> Result<()> {
        if self.0.is_none() && budget.limit.is_some() {
            let wanted = (budget.merge_bytes / 4).max(LEAST_BYTES);
            self.0 = Some(shared.memory.operations.hold_iterator(wanted, LEAST_BYTES)?);
        }
        Ok(())
    }

    /// Like [`IteratorShare::take`], for an iterator that keeps reading all sequences of tables of a version, for one
    /// prefix or for all items, and collects where the log's items are. Returns the bytes of a read for all sequences
    /// together.
    pub fn take_merging(
        &mut self,
        shared: &Shared,
        budget: &MemoryBudget,
        version: &Version,
        of_prefix: bool,
    ) -> Result<usize> {
        if budget.limit.is_none() {
            return Ok(budget.read_bytes);
        }
        let sequences = version.body.sequences();
        // A run has a page or two of one prefix.
        let pages_each = if of_prefix { 2 } else { READS_AHEAD_MAX };
        let pages = (sequences.max(1) * pages_each * PAGE_BYTES) as u64;
        let logged: usize = version.log_stores.iter().map(|store| store.len()).sum();
        let gathered = if of_prefix { 0 } else { logged as u64 * LOGGED_BYTES };
        let best = ((budget.read_bytes * READS_AHEAD_MAX / 4) as u64).max(pages);
        let held = shared.memory.operations.hold_iterator(best + gathered, pages + gathered)?;
        let reads = (held.bytes() - gathered) as usize / READS_AHEAD_MAX;
        self.0 = Some(held);
        Ok(reads.min(budget.read_bytes))
    }

    /// Gives it back.
    pub fn give_back(&mut self) {
        self.0 = None;
    }

    /// Maximum bytes of young items: a quarter, since they take twice their size while they are collected.
    pub fn young_bytes(&self) -> u64 {
        self.0.as_ref().map_or(u64::MAX, |memory| (memory.bytes() / 4).max(1))
    }

    /// Number of items of a chunk if they have `item_bytes` bytes on average.
    pub fn chunk_items(&self, item_bytes: u64) -> u64 {
        match &self.0 {
            Some(memory) => {
                (memory.bytes() / 4 / (item_bytes + CHUNK_ITEM_BYTES)).clamp(CHUNK_ITEMS_MIN, CHUNK_ITEMS)
            }
            None => CHUNK_ITEMS,
        }
    }
}

/// Room for the reads of one chunk from this many sequences of tables, and the bytes of a read for each.
pub(super) fn read_room<'a>(
    shared: &'a Shared,
    budget: &MemoryBudget,
    sequences: usize,
) -> (Option<HeldRoom<'a>>, usize) {
    if budget.limit.is_none() {
        return (None, budget.read_bytes_each(sequences));
    }
    // Several iterators read at the same time.
    let each = MemoryBudget { read_bytes: budget.read_bytes / 4, ..*budget }.read_bytes_each(sequences);
    let bytes = each * sequences * READS_AHEAD_MAX;
    (shared.memory.operations.buffers.hold(bytes as u64), each)
}
