//! Statistics of a partition.

use crate::access::Access;
use crate::memory::UNIT_BYTES;
use crate::partition::{Body, Partition};
use crate::sync::{AtomicU64, Ordering};
use crate::zone::ZoneStats;

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
    /// Bytes that the logs may use now. With a compressed zone it changes while the cache is used.
    pub log_bytes_max: u64,
    /// The compressed zone, whose items and hits the numbers above include.
    pub zone: ZoneStats,
}

impl<A: Access> Partition<Evicting, A> {
    /// Maximum bytes of logs, ghost and zone.
    fn region_bytes(&self, body: &Body<Evicting>) -> usize {
        match &self.policy.tiers {
            Some(tiers) => tiers.bytes_max(body),
            None => body.region.bytes,
        }
    }

    /// The partition's statistics.
    pub fn stats(&self) -> PartitionStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (hits, misses) = self.policy.reads.sum();
        let body = self.body.get();
        let counters = &self.counters;
        let zone = self.policy.tiers.as_deref().map_or_else(ZoneStats::default, |tiers| tiers.stats());
        let (evicted, evicted_by_index) = match self.policy.tiers {
            None => (load(&counters.evicted), load(&counters.evicted_by_index)),
            // What the logs and the index evict goes to the zone.
            Some(_) => {
                let all = load(&counters.evicted) + load(&counters.evicted_by_index) + zone.evicted;
                (all.saturating_sub(zone.demoted), 0)
            }
        };
        PartitionStats {
            hits,
            misses,
            items: counters.items() + zone.items,
            // An item that the zone had, and that was written or moved to the logs, is not new.
            inserted: load(&counters.inserted) - zone.hidden.min(load(&counters.inserted)),
            replaced: load(&counters.replaced) + zone.hidden - zone.promoted.min(zone.hidden),
            updated_in_place: load(&counters.updated_in_place),
            removed: load(&counters.removed) + zone.removed,
            evicted,
            evicted_by_index,
            expired: load(&counters.expired) + zone.expired,
            reinserted: load(&counters.moved),
            too_large: load(&counters.refused),
            memory_bytes: (index_bytes(body.tables) + self.region_bytes(body) + size_of::<Self>()) as u64,
            index_bytes: index_bytes(body.tables) as u64,
            index_bytes_now: index_bytes(body.tables_now()) as u64,
            inline_items: load(&counters.inline),
            log_bytes_used: body.region.used_bytes(),
            log_bytes_max: body.region.logs.iter().map(|log| log.limit() * UNIT_BYTES as u64).sum(),
            zone,
        }
    }
}
