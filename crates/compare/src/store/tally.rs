//! What one engine did in one work.

use std::fs;

use alluvium_bench::latencies::Latencies;

use super::engine::Engine;

/// Counts of one engine in all rounds of a work.
#[derive(Default)]
pub struct Tally {
    /// Operations per second of each round.
    rates: Vec<f64>,
    operations: u64,
    /// Read requests, if the engine counts them.
    requests: Option<u64>,
    /// Bytes that the process read from devices, if the system counts them.
    bytes: Option<u64>,
    /// Durations, of works that measure them.
    pub latencies: Latencies,
}

/// Reads counted before an engine's turn.
pub struct ReadsBefore {
    requests: Option<u64>,
    bytes: Option<u64>,
}

impl ReadsBefore {
    pub fn of(engine: &dyn Engine) -> Self {
        Self { requests: engine.read_requests(), bytes: process_read_bytes() }
    }
}

impl Tally {
    /// Adds a round.
    pub fn add(&mut self, operations: u64, per_second: f64, before: &ReadsBefore, engine: &dyn Engine) {
        let now = ReadsBefore::of(engine);
        let since = |now: Option<u64>, before| Some(now?.saturating_sub(before?));
        self.rates.push(per_second);
        self.operations += operations;
        self.requests = sum(self.requests, since(now.requests, before.requests));
        self.bytes = sum(self.bytes, since(now.bytes, before.bytes));
    }

    /// Median of the rounds, in operations per second.
    pub fn rate(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// Read requests per operation.
    pub fn requests_each(&self) -> Option<f64> {
        Some(self.requests? as f64 / self.operations.max(1) as f64)
    }

    /// Bytes read from devices per operation.
    pub fn bytes_each(&self) -> Option<f64> {
        Some(self.bytes? as f64 / self.operations.max(1) as f64)
    }
}

fn sum(left: Option<u64>, right: Option<u64>) -> Option<u64> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left + right),
        (left, right) => left.or(right),
    }
}

/// Bytes that this process has caused to be read from devices, readahead included and page cache hits not. Counts only
/// this process, unlike the counters of the device, so other processes do not disturb it.
fn process_read_bytes() -> Option<u64> {
    read_bytes(&fs::read_to_string("/proc/self/io").ok()?)
}

fn read_bytes(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_text_is_understood() {
        let text = "rchar: 7\nwchar: 8\nsyscr: 1\nsyscw: 1\nread_bytes: 4096\nwrite_bytes: 12\n";
        assert_eq!(read_bytes(text), Some(4096));
        assert_eq!(read_bytes("rchar: 7\n"), None);
    }

    #[test]
    fn the_median_of_the_rounds_is_the_rate() {
        let tally = Tally { rates: vec![3.0, 1.0, 2.0], ..Tally::default() };
        assert_eq!(tally.rate(), 2.0);
        assert!(Tally::default().rate().is_nan());
    }
}
