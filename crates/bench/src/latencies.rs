//! Durations of operations: a histogram with two significant digits from 100 ns to 100 s.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::measurement::Measurement;

const NANOSECONDS_MIN: u64 = 100;
const NANOSECONDS_MAX: u64 = 100_000_000_000;

/// Durations of many operations. Takes only about 25 KB, since memory limits include it; recording takes some
/// nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u32>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(NANOSECONDS_MIN, NANOSECONDS_MAX, 2);
        Self { histogram: histogram.expect("the bounds are constants that the histogram takes") }
    }
}

impl Latencies {
    /// Bytes of memory of one value of this type.
    pub fn memory_bytes(&self) -> u64 {
        self.histogram.distinct_values() as u64 * size_of::<u32>() as u64
    }

    /// Counts one operation.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.histogram.saturating_record(duration.as_nanos().min(u128::from(NANOSECONDS_MAX)) as u64);
    }

    /// Adds the operations of `other`.
    pub fn add(&mut self, other: &Self) {
        // Both have the same constant bounds, the only condition for adding.
        self.histogram.add(&other.histogram).expect("histograms of equal bounds add up");
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The longest, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.histogram.max() as f64 / 1e6
    }

    /// The duration in microseconds that the share `quantile` of the operations did not exceed.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        self.histogram.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Adds `p50_us`, `p99_us`, `p999_us` and `max_ms`.
    pub fn report(&self, measurement: Measurement) -> Measurement {
        if self.histogram.is_empty() {
            return measurement;
        }
        measurement
            .metric("p50_us", self.quantile_us(0.5))
            .metric("p99_us", self.quantile_us(0.99))
            .metric("p999_us", self.quantile_us(0.999))
            .metric("max_ms", self.max_ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_a_known_series() {
        let mut latencies = Latencies::default();
        let mut upper = Latencies::default();
        for microseconds in 1..=500 {
            latencies.record(Duration::from_micros(microseconds));
            upper.record(Duration::from_micros(microseconds + 500));
        }
        latencies.add(&upper);
        assert!((latencies.quantile_us(0.5) - 500.0).abs() < 5.0);
        assert!((latencies.quantile_us(0.99) - 990.0).abs() < 10.0);
        assert!((latencies.max_ms() - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_exceeds_the_bounds_is_kept_at_the_bound() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_secs(1_000));
        latencies.record(Duration::ZERO);
        assert!(latencies.max_ms() >= 99_000.0);
    }
}
