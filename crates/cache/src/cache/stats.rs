//! Statistics of a cache.

use crate::access::{Access, SharedWrites};

use super::handle::Cache;

/// Statistics of one partition. Beside a writer they are read one by one and may not be consistent with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionStats {
    /// Gets that found their item.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Items present. Under [`Eviction::Fifo`](crate::Eviction::Fifo) evicted ones count until the index is swept.
    ///
    /// Always `inserted - removed - evicted - evicted_by_index - expired`.
    pub items: u64,
    /// Sets of keys that had no item.
    pub inserted: u64,
    /// Sets of keys that had an item, stored at a new position.
    pub replaced: u64,
    /// Sets of keys that had an item, stored in place.
    pub updated_in_place: u64,
    /// Items removed on request.
    pub removed: u64,
    /// Items that made room for others.
    pub evicted: u64,
    /// Items forgotten because their bucket of the index was full.
    pub evicted_by_index: u64,
    /// Items that expired.
    pub expired: u64,
    /// Items moved within or between logs by the eviction policy.
    pub reinserted: u64,
    /// Sets refused because the item was too large.
    pub too_large: u64,
    /// Maximum bytes that the partition may use, everything included.
    pub memory_bytes: u64,
    /// Of these, bytes of the index, including the inline items.
    pub index_bytes: u64,
    /// Of these, bytes of the index at its present size.
    pub index_bytes_now: u64,
    /// Of the items present, those that are stored in their bucket of the index.
    pub inline_items: u64,
    /// Bytes of the logs in use, by items present and items that were replaced.
    pub log_bytes_used: u64,
}

/// Statistics of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// By partition.
    pub partitions: Vec<PartitionStats>,
}

impl Stats {
    /// The sum over all partitions.
    pub fn total(&self) -> PartitionStats {
        self.partitions.iter().fold(PartitionStats::default(), |sum, part| PartitionStats {
            hits: sum.hits + part.hits,
            misses: sum.misses + part.misses,
            items: sum.items + part.items,
            inserted: sum.inserted + part.inserted,
            replaced: sum.replaced + part.replaced,
            updated_in_place: sum.updated_in_place + part.updated_in_place,
            removed: sum.removed + part.removed,
            evicted: sum.evicted + part.evicted,
            evicted_by_index: sum.evicted_by_index + part.evicted_by_index,
            expired: sum.expired + part.expired,
            reinserted: sum.reinserted + part.reinserted,
            too_large: sum.too_large + part.too_large,
            memory_bytes: sum.memory_bytes + part.memory_bytes,
            index_bytes: sum.index_bytes + part.index_bytes,
            index_bytes_now: sum.index_bytes_now + part.index_bytes_now,
            inline_items: sum.inline_items + part.inline_items,
            log_bytes_used: sum.log_bytes_used + part.log_bytes_used,
        })
    }
}

impl<A: Access> Cache<A> {
    /// Statistics. Costs no more than reading the counters.
    pub fn stats(&self) -> Stats {
        Stats { partitions: self.partitions.iter().map(|partition| partition.stats()).collect() }
    }

    /// Items present: see [`PartitionStats::items`].
    pub fn len(&self) -> usize {
        self.stats().total().items as usize
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<A: SharedWrites> Cache<A> {
    /// Sweeps the whole index and removes the entries of evicted and expired items, so that counts are exact. Otherwise
    /// sets do this bit by bit.
    pub fn sweep(&self) {
        self.partitions.iter().for_each(|partition| partition.sweep(usize::MAX));
    }
}
