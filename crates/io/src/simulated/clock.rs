//! A clock of the simulation.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::Clock;
use crate::sync::{is_simulated, simulated_time};

/// A clock that moves only when it is advanced, or when a thread sleeps on it. Clones are the same clock.
///
/// Starts at monotonic 0 and at the given wall-clock time. In the threads of a simulated execution it also advances
/// with the execution's clock, and a sleep lets other threads run.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    times: Arc<Mutex<Times>>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    monotonic: Duration,
    unix: Duration,
    /// The time of the execution when the wall clock was set.
    set_at: Duration,
}

impl SimulatedClock {
    /// A clock whose wall-clock time is `unix` since 1970.
    pub fn new(unix: Duration) -> Self {
        Self {
            times: Arc::new(Mutex::new(Times { monotonic: Duration::ZERO, unix, set_at: simulated_time() })),
        }
    }

    /// Moves both times forward, up to the maximum of a `Duration`.
    pub fn advance(&self, duration: Duration) {
        let mut times = self.times();
        times.monotonic = times.monotonic.saturating_add(duration);
        times.unix = times.unix.saturating_add(duration);
    }

    /// Sets the wall clock, forward or back, as an administrator or a time server does. The monotonic time stays.
    pub fn set_unix(&self, unix: Duration) {
        let mut times = self.times();
        (times.unix, times.set_at) = (unix, simulated_time());
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SimulatedClock {
    /// Starts on 2026-01-01, so that expiry times in tests look like real ones.
    fn default() -> Self {
        const UNIX_SECONDS_2026: u64 = 1_767_225_600;
        Self::new(Duration::from_secs(UNIX_SECONDS_2026))
    }
}

impl Clock for SimulatedClock {
    fn monotonic(&self) -> Duration {
        self.times().monotonic.saturating_add(simulated_time())
    }

    fn unix(&self) -> Duration {
        let times = self.times();
        times.unix.saturating_add(simulated_time().saturating_sub(times.set_at))
    }

    /// Advances the clock and returns at once; in a simulated execution, waits for its clock.
    fn sleep(&self, duration: Duration) {
        if is_simulated() {
            crate::sync::thread::sleep(duration);
        } else {
            self.advance(duration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_moves_only_when_told() {
        let clock = SimulatedClock::default();
        let start = clock.unix();
        assert_eq!((clock.monotonic(), clock.unix()), (Duration::ZERO, start));
        clock.clone().advance(Duration::from_secs(3));
        clock.sleep(Duration::from_secs(4));
        assert_eq!(
            (clock.monotonic(), clock.unix()),
            (Duration::from_secs(7), start + Duration::from_secs(7))
        );
        clock.set_unix(Duration::from_secs(1));
        assert_eq!((clock.monotonic(), clock.unix()), (Duration::from_secs(7), Duration::from_secs(1)));
        clock.advance(Duration::MAX);
        assert_eq!(clock.unix(), Duration::MAX);
    }
}
