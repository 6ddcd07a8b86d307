//! [`Clock`]: how a buffer measures the cost of lookups.

use std::time::Instant;

/// Nanoseconds since an arbitrary moment, never decreasing. Read once in each thousand lookups of a trial.
pub trait Clock {
    /// The time.
    fn now_ns(&self) -> u64;
}

/// The system's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
