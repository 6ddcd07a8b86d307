//! Time as a constructor argument.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::sync::{Mutex, MutexGuard};

/// Where a component gets the time from. The simulation passes its own.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Time that never goes back, since an arbitrary moment.
    fn monotonic(&self) -> Duration;

    /// Wall-clock time since 1970, which may go back.
    fn unix(&self) -> Duration;

    /// Waits for `duration`.
    fn sleep(&self, duration: Duration);
}

/// The operating system's clocks.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: std::time::Instant::now() }
    }
}

impl Clock for SystemClock {
    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }

    fn unix(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        crate::sync::thread::sleep(duration);
    }
}

/// A clock that moves only when told, or when somebody sleeps on it. Clones are the same clock.
///
/// Starts at monotonic 0 and at the given wall-clock time.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    times: Arc<Mutex<Times>>,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    monotonic: Duration,
    unix: Duration,
}

impl SimulatedClock {
    /// A clock whose wall-clock time is `unix` since 1970.
    pub fn new(unix: Duration) -> Self {
        Self { times: Arc::new(Mutex::new(Times { monotonic: Duration::ZERO, unix })) }
    }

    /// Moves both times forward, at most to the largest a `Duration` holds.
    pub fn advance(&self, duration: Duration) {
        let mut times = self.times();
        times.monotonic = times.monotonic.saturating_add(duration);
        times.unix = times.unix.saturating_add(duration);
    }

    /// Sets the wall clock, forward or back, as an administrator or a time server does. The monotonic time stays.
    pub fn set_unix(&self, unix: Duration) {
        self.times().unix = unix;
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
        self.times().monotonic
    }

    fn unix(&self) -> Duration {
        self.times().unix
    }

    /// Advances the clock and returns at once.
    fn sleep(&self, duration: Duration) {
        self.advance(duration);
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

    #[test]
    fn system_time_does_not_go_back() {
        let clock = SystemClock::default();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
    }
}
