//! Statistics of a zone.

use crate::sync::{AtomicU64, Ordering};

use super::Zone;

/// Statistics of the compressed zone of a partition; all zero without one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneStats {
    /// Gets that found their item here.
    pub hits: u64,
    /// Items present.
    pub items: u64,
    /// Items that came from the hot zone.
    pub demoted: u64,
    /// Items that moved back to the hot zone since they were used again soon.
    pub promoted: u64,
    /// Items that were replaced by a write to the hot zone, or moved there.
    pub hidden: u64,
    /// Items removed on request.
    pub removed: u64,
    /// Items that made room for others.
    pub evicted: u64,
    /// Items that expired.
    pub expired: u64,
    /// Blocks.
    pub blocks: u64,
    /// Bytes of blocks, headers included.
    pub block_bytes: u64,
    /// Resident bytes of blocks and the space between them.
    pub arena_bytes: u64,
    /// Resident bytes of the directory.
    pub directory_bytes: u64,
    /// Blocks that were moved to gather free space.
    pub blocks_moved: u64,
    /// Bytes of items in blocks that were compressed, since the start.
    pub raw_bytes_encoded: u64,
    /// The same bytes after compression.
    pub bytes_encoded: u64,
    /// Bytes of the dictionaries that all partitions of the cache share.
    pub dictionary_bytes: u64,
    /// Dictionaries that were learned for them, since the start.
    pub dictionaries_learned: u64,
}

impl ZoneStats {
    /// Items before compression divided by items after it, in blocks written since the start.
    pub fn compression_ratio(&self) -> f64 {
        if self.bytes_encoded == 0 { 1.0 } else { self.raw_bytes_encoded as f64 / self.bytes_encoded as f64 }
    }
}

impl std::ops::Add for ZoneStats {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            items: self.items + other.items,
            demoted: self.demoted + other.demoted,
            promoted: self.promoted + other.promoted,
            hidden: self.hidden + other.hidden,
            removed: self.removed + other.removed,
            evicted: self.evicted + other.evicted,
            expired: self.expired + other.expired,
            blocks: self.blocks + other.blocks,
            block_bytes: self.block_bytes + other.block_bytes,
            arena_bytes: self.arena_bytes + other.arena_bytes,
            directory_bytes: self.directory_bytes + other.directory_bytes,
            blocks_moved: self.blocks_moved + other.blocks_moved,
            raw_bytes_encoded: self.raw_bytes_encoded + other.raw_bytes_encoded,
            bytes_encoded: self.bytes_encoded + other.bytes_encoded,
            dictionary_bytes: self.dictionary_bytes.max(other.dictionary_bytes),
            dictionaries_learned: self.dictionaries_learned.max(other.dictionaries_learned),
        }
    }
}

impl Zone {
    /// The zone's statistics, without hits.
    pub fn stats(&self) -> ZoneStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &self.counters;
        let [raw_bytes_encoded, bytes_encoded] = self.writer().encoder.bytes;
        let dictionaries = self.compression.dictionaries.as_ref();
        let (dictionary_bytes, dictionaries_learned) =
            dictionaries.map_or((0, 0), |dictionaries| dictionaries.figures());
        ZoneStats {
            hits: 0,
            items: load(&counters.items),
            demoted: load(&counters.came),
            promoted: load(&counters.promoted),
            hidden: load(&counters.hidden),
            removed: load(&counters.removed),
            evicted: load(&counters.evicted),
            expired: load(&counters.expired),
            blocks: load(&counters.blocks),
            block_bytes: load(&counters.block_bytes),
            arena_bytes: load(&counters.arena_bytes),
            directory_bytes: self.directory.bytes() as u64,
            blocks_moved: load(&counters.moved),
            raw_bytes_encoded,
            bytes_encoded,
            dictionary_bytes,
            dictionaries_learned,
        }
    }
}
