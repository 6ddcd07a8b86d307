//! Keys of stores that are loaded for figures, and what gets of them read.

use alluvium::Db;
use alluvium_bench::random::mix;

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The key of an item.
pub fn key(number: u64, seed: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..8].copy_from_slice(&mix(number ^ seed << 48).to_le_bytes());
    key
}

/// Number of pages and indexes that were read for gets since the opening.
pub fn device_reads(db: &Db) -> u64 {
    let stats = db.stats();
    stats.traffic.page_reads + stats.memory_limit.index_reads
}
