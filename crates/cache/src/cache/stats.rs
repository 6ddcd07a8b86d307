//! Statistics of a cache.

use crate::access::{Access, SharedWrites};
use crate::evicting::PartitionStats;

use super::handle::Cache;

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
            log_bytes_max: sum.log_bytes_max + part.log_bytes_max,
            zone: sum.zone + part.zone,
        })
    }
}

impl<A: Access> Cache<A> {
    /// Statistics. Costs no more than reading the counters.
    pub fn stats(&self) -> Stats {
        Stats { partitions: self.partitions.all.iter().map(|partition| partition.stats()).collect() }
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
        self.partitions.all.iter().for_each(|partition| partition.sweep(usize::MAX));
    }
}
