//! What the benchmark takes from the engine's own statistics, to compare with the device's counters.

use alluvium::Stats;

use crate::measurement::Measurement;

/// Bytes that the engine reports as written, including everything.
pub fn bytes_written(stats: &Stats) -> u64 {
    let traffic = &stats.traffic;
    traffic.log_bytes_written
        + traffic.hash_bytes_written
        + traffic.sorted_bytes_written
        + traffic.spill_bytes_written
        + traffic.manifest_bytes_written
}

/// Bytes that the engine wrote between two times into each level, under a name that metrics can have, and those of them
/// that belong to filters.
pub fn levels_written(before: &Stats, after: &Stats) -> Vec<(String, u64)> {
    let mut written = Vec::new();
    let mut filters = 0;
    for (number, level) in after.levels.iter().enumerate() {
        let earlier = before.levels.get(number);
        let bytes = level.bytes_written - earlier.map_or(0, |level| level.bytes_written);
        written.push((level.name.replace(' ', "_"), bytes));
        filters += level.filter_bytes_written - earlier.map_or(0, |level| level.filter_bytes_written);
    }
    written.push(("filters".to_owned(), filters));
    written
}

/// Adds what writers waited for between two times: for each cause the number of waits, their sum, and the longest since
/// the database was opened.
pub fn write_waits(measurement: Measurement, before: &Stats, after: &Stats) -> Measurement {
    let causes = before.write_waits.by_cause().into_iter().zip(after.write_waits.by_cause());
    causes.filter(|((_, before), (_, after))| after.count > before.count).fold(
        measurement,
        |measurement, ((_, before), (cause, after))| {
            measurement
                .metric(&format!("waits_{cause}"), after.count - before.count)
                .metric(&format!("waits_{cause}_s"), (after.total_ns - before.total_ns) as f64 / 1e9)
                .metric(&format!("waits_{cause}_longest_us"), after.longest_ns as f64 / 1e3)
        },
    )
}
