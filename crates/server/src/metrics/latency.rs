//! [`LatencyHistogram`]: durations of operations, in fixed buckets.

use std::sync::atomic::{AtomicU64, Ordering};

/// The upper bound of the first bucket. Bounds then grow by 4/3 and 3/2 in turns, so a quantile is known within a
/// third.
const FIRST_NS: u64 = 500;
/// Buckets with an upper bound, the last one at 8.4 seconds.
pub(super) const FINITE_BUCKETS: usize = 48;
/// All buckets.
pub(super) const BUCKETS: usize = FINITE_BUCKETS + 1;

/// Maximum nanoseconds that belong to a bucket with an upper bound.
pub(super) fn bound_ns(bucket: usize) -> u64 {
    match bucket {
        0 | 1 => FIRST_NS << bucket,
        _ => (FIRST_NS << (bucket / 2 - 1)) * (3 + bucket as u64 % 2),
    }
}

/// The bucket of a duration.
#[inline]
fn bucket_of(ns: u64) -> usize {
    let steps = ns.saturating_sub(1) / FIRST_NS;
    if steps < 2 {
        return steps as usize;
    }
    let highest = steps.ilog2();
    let second_bit = (steps >> (highest - 1)) & 1;
    (2 * highest as usize + second_bit as usize).min(FINITE_BUCKETS)
}

/// Durations, counted by one thread and read by others.
#[derive(Debug)]
pub(super) struct LatencyHistogram {
    counts: [AtomicU64; BUCKETS],
    total_ns: AtomicU64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: [const { AtomicU64::new(0) }; BUCKETS], total_ns: AtomicU64::new(0) }
    }
}

impl LatencyHistogram {
    /// Counts `times` operations that took `ns` each.
    #[inline]
    pub fn record(&self, ns: u64, times: u64) {
        add(&self.counts[bucket_of(ns)], times);
        add(&self.total_ns, ns * times);
    }
}

/// Adds to a counter that no other thread writes: no instruction locks the cache line.
#[inline]
pub(super) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// The durations of several histograms together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Latencies {
    /// Number of operations in each bucket alone.
    pub counts: [u64; BUCKETS],
    pub total_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total_ns: 0 }
    }
}

impl Latencies {
    pub fn add(&mut self, histogram: &LatencyHistogram) {
        for (count, counter) in self.counts.iter_mut().zip(&histogram.counts) {
            *count += counter.load(Ordering::Relaxed);
        }
        self.total_ns += histogram.total_ns.load(Ordering::Relaxed);
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_bucket() {
        for bucket in 0..FINITE_BUCKETS {
            assert_eq!(bucket_of(bound_ns(bucket)), bucket, "{}", bound_ns(bucket));
            assert_eq!(bucket_of(bound_ns(bucket) + 1), bucket + 1);
        }
        assert_eq!(bucket_of(0), 0);
        assert_eq!(bucket_of(u64::MAX), FINITE_BUCKETS);
        assert_eq!(bound_ns(FINITE_BUCKETS - 1), 500 << 24);
    }

    #[test]
    fn histograms_add_up() {
        let histograms = [LatencyHistogram::default(), LatencyHistogram::default()];
        histograms[0].record(700, 3);
        histograms[1].record(700, 1);
        histograms[1].record(u64::MAX >> 8, 1);
        let mut sum = Latencies::default();
        histograms.iter().for_each(|histogram| sum.add(histogram));
        assert_eq!((sum.count(), sum.counts[1], sum.counts[FINITE_BUCKETS]), (5, 4, 1));
        assert_eq!(sum.total_ns, 4 * 700 + (u64::MAX >> 8));
    }
}
