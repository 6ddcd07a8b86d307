//! What the benchmark takes from the engine's own statistics: memory by kind, and counters to compare with the
//! device's.

use alluvium::Stats;

/// Memory of everything that finds items: indexes, filters and the log's index.
pub fn index_bytes(stats: &Stats) -> u64 {
    stats.memory.log_index_bytes + stats.memory.filter_bytes + stats.memory.index_bytes
}

/// Bytes that the engine says it has written, everything included.
pub fn bytes_written(stats: &Stats) -> u64 {
    stats.bytes_written_log
        + stats.bytes_written_hash
        + stats.bytes_written_sorted
        + stats.bytes_written_manifest
}

/// Reads that the engine says it has done for gets.
pub fn reads(stats: &Stats) -> u64 {
    stats.reads
}
