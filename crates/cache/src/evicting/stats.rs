//! Statistics of a partition.

use crate::access::Access;
use crate::partition::Partition;
use crate::sync::{AtomicU64, Ordering};

use super::policy::Evicting;
use super::shape::index_bytes;

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

impl<A: Access> Partition<Evicting, A> {
    /// The partition's statistics.
    pub fn stats(&self) -> PartitionStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (hits, misses) = self.policy.reads.sum();
        let body = self.body.get();
        let counters = &self.counters;
        PartitionStats {
            hits,
            misses,
            items: counters.items(),
            inserted: load(&counters.inserted),
            replaced: load(&counters.replaced),
            updated_in_place: load(&counters.updated_in_place),
            removed: load(&counters.removed),
            evicted: load(&counters.evicted),
            evicted_by_index: load(&counters.evicted_by_index),
            expired: load(&counters.expired),
            reinserted: load(&counters.moved),
            too_large: load(&counters.refused),
            memory_bytes: (index_bytes(body.tables) + body.region.bytes + size_of::<Self>()) as u64,
            index_bytes: index_bytes(body.tables) as u64,
            index_bytes_now: index_bytes(body.tables_now()) as u64,
            inline_items: load(&counters.inline),
            log_bytes_used: body.region.used_bytes(),
        }
    }
}
