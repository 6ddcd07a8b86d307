//! [`Wait`]: how often and for how long callers waited for one cause.

use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard, TryLockError};
use serde::{Deserialize, Serialize};

/// Counts the waits for one cause. Costs two readings of the clock a wait, and nothing where nobody waits.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

/// Waits of callers for one cause since the database was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitStats {
    /// Number of waits.
    pub count: u64,
    /// Their total length in nanoseconds.
    pub total_ns: u64,
    /// The longest, in nanoseconds.
    pub longest_ns: u64,
}

impl Wait {
    /// Counts a wait of this length.
    pub fn add(&self, length: Duration) {
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(length_ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(length_ns, Ordering::Relaxed);
    }

    /// Counts the time that `body` takes as a wait.
    pub fn during<R>(&self, clock: &dyn Clock, body: impl FnOnce() -> R) -> R {
        let start = clock.monotonic();
        let result = body();
        self.add(clock.monotonic().saturating_sub(start));
        result
    }

    /// Takes a lock; counts a wait if another thread holds it.
    #[inline]
    pub fn for_lock<'a, T>(&self, clock: &dyn Clock, lock: &'a Mutex<T>) -> MutexGuard<'a, T> {
        match lock.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::WouldBlock) => self.during(clock, || lock.lock()).expect("no panic while held"),
            Err(TryLockError::Poisoned(_)) => panic!("no panic while held"),
        }
    }

    /// What was counted so far.
    pub fn stats(&self) -> WaitStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        WaitStats {
            count: get(&self.count),
            total_ns: get(&self.total_ns),
            longest_ns: get(&self.longest_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use alluvium_io::SimulatedClock;

    use super::*;

    #[test]
    fn waits_are_counted_and_the_longest_is_known() {
        let (wait, clock) = (Wait::default(), SimulatedClock::default());
        for milliseconds in [1, 5, 2] {
            wait.during(&clock, || clock.advance(Duration::from_millis(milliseconds)));
        }
        let stats = wait.stats();
        assert_eq!((stats.count, stats.total_ns, stats.longest_ns), (3, 8_000_000, 5_000_000));
        let lock = Mutex::new(());
        drop(wait.for_lock(&clock, &lock));
        assert_eq!(wait.stats(), stats);
    }
}
