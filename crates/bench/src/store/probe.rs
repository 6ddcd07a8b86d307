//! What the benchmark takes from the engine's own statistics, to compare with what the device says.

use alluvium::Stats;

/// Bytes that the engine says it has written, everything included.
pub fn bytes_written(stats: &Stats) -> u64 {
    let traffic = &stats.traffic;
    traffic.log_bytes_written
        + traffic.hash_bytes_written
        + traffic.sorted_bytes_written
        + traffic.spill_bytes_written
        + traffic.manifest_bytes_written
}
