//! Statistics of a cache that survives.

use crate::sync::Ordering;

use super::cache::SurvivingCache;
use super::medium::Medium;
use super::open::Opened;

/// Statistics of a [`SurvivingCache`], since it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurvivingStats {
    /// How the content was found when the cache was opened.
    pub opened: Opened,
    /// Gets that found their item.
    pub hits: u64,
    /// Gets that did not.
    pub misses: u64,
    /// Items of keys that had none.
    pub inserted: u64,
    /// Items that replaced one.
    pub replaced: u64,
    /// Those of them that were written over the former item.
    pub overwritten: u64,
    /// Sets of items in the write cache.
    pub hot_sets: u64,
    /// Items that went from the write cache to the file.
    pub cooled: u64,
    /// Items that were removed.
    pub removed: u64,
    /// Items that were not kept when their zone was cleaned.
    pub evicted: u64,
    /// Items whose descriptor was replaced because its bucket was full.
    pub evicted_by_index: u64,
    /// Items that were found to be expired by writes and cleanings.
    pub expired: u64,
    /// Items that were kept when their zone was cleaned.
    pub kept: u64,
    /// Items that cleaning compressed; an item counts again when its block is made anew.
    pub packed: u64,
    /// Bytes of these items, and of their blocks.
    pub packed_raw_bytes: u64,
    /// See [`packed_raw_bytes`](Self::packed_raw_bytes).
    pub packed_bytes: u64,
    /// Blocks that were copied as they are.
    pub blocks_copied: u64,
    /// Items that a get took out of their block.
    pub promoted: u64,
    /// Gets that found their item in a block, which they decompressed.
    pub unpacked: u64,
    /// Bytes of zones that blocks take.
    pub block_bytes: u64,
    /// Dictionaries in the file.
    pub dictionaries: u64,
    /// Items that were refused because of their size.
    pub too_large: u64,
    /// Reads of items that did not survive the last crash whole. There is no count of those of which nothing survived.
    pub broken: u64,
    /// Zones that were cleaned.
    pub cleanings: u64,
    /// Zones.
    pub zones: u64,
    /// Bytes of a zone.
    pub zone_bytes: u64,
    /// Lines that were flushed.
    pub flushes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of memory beside the file.
    pub beside_bytes: u64,
    /// Bytes of zones that may have items.
    pub used_bytes: u64,
}

impl SurvivingStats {
    /// Bytes of items that were compressed by those of their blocks; 0 if none were.
    pub fn compression_ratio(&self) -> f64 {
        self.packed_raw_bytes as f64 / self.packed_bytes.max(1) as f64
    }
}

impl SurvivingCache {
    /// Statistics.
    pub fn stats(&self) -> SurvivingStats {
        let core = self.core();
        let geometry = &core.shared.geometry;
        let mut stats = SurvivingStats {
            opened: self.opened(),
            hits: 0,
            misses: 0,
            inserted: 0,
            replaced: 0,
            overwritten: 0,
            hot_sets: 0,
            cooled: 0,
            removed: 0,
            evicted: 0,
            evicted_by_index: 0,
            expired: 0,
            kept: 0,
            packed: 0,
            packed_raw_bytes: 0,
            packed_bytes: 0,
            blocks_copied: 0,
            promoted: 0,
            unpacked: 0,
            block_bytes: 0,
            dictionaries: 0,
            too_large: 0,
            broken: 0,
            cleanings: 0,
            zones: (geometry.partitions * geometry.zones) as u64,
            zone_bytes: geometry.zone_bytes as u64,
            flushes: core.shared.medium.flushes(),
            file_bytes: core.shared.medium.len() as u64,
            beside_bytes: (geometry.partitions * geometry.buckets * 8) as u64,
            used_bytes: 0,
        };
        let packing = core.shared.packing.as_ref();
        if let Some(dictionaries) = packing.and_then(|packing| packing.dictionaries.as_ref()) {
            let (count, bytes) = dictionaries.figures();
            stats.dictionaries = count;
            stats.beside_bytes += bytes;
        }
        for part in &core.parts {
            stats.beside_bytes += part.write_cache.as_ref().map_or(0, |cache| cache.bytes() as u64);
            let (hits, misses) = part.reads.sum();
            stats.hits += hits;
            stats.misses += misses;
            let counters = &part.counters;
            for (sum, counter) in [
                (&mut stats.inserted, &counters.inserted),
                (&mut stats.replaced, &counters.replaced),
                (&mut stats.overwritten, &counters.overwritten),
                (&mut stats.hot_sets, &counters.hot_sets),
                (&mut stats.cooled, &counters.cooled),
                (&mut stats.removed, &counters.removed),
                (&mut stats.evicted, &counters.evicted),
                (&mut stats.evicted_by_index, &counters.evicted_by_index),
                (&mut stats.expired, &counters.expired),
                (&mut stats.kept, &counters.kept),
                (&mut stats.packed, &counters.packed),
                (&mut stats.packed_raw_bytes, &counters.packed_raw_bytes),
                (&mut stats.packed_bytes, &counters.packed_bytes),
                (&mut stats.blocks_copied, &counters.blocks_copied),
                (&mut stats.promoted, &counters.promoted),
                (&mut stats.unpacked, &counters.unpacked),
                (&mut stats.too_large, &counters.too_large),
                (&mut stats.broken, &counters.broken),
                (&mut stats.cleanings, &counters.cleanings),
            ] {
                *sum += counter.load(Ordering::Relaxed);
            }
            if core.shared.packing.is_some() {
                let units: usize = (0..geometry.zones).map(|zone| core.shared.packed(part.zone(zone))).sum();
                stats.block_bytes += (units * super::descriptor::UNIT) as u64;
            }
            let zones = (0..geometry.zones).map(|zone| part.zone(zone));
            let units: usize = zones.map(|zone| core.shared.used(zone)).sum();
            stats.used_bytes += (units * super::descriptor::UNIT) as u64;
        }
        stats
    }
}
