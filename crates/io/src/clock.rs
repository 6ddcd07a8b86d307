//! Time as a constructor argument.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The source of time of a component. The simulation passes its own.
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

    /// Sleeps of less than a millisecond end as soon as the system can; others up to 50 µs later, together with other
    /// timers.
    fn sleep(&self, duration: Duration) {
        const SHORT: Duration = Duration::from_millis(1);
        let _prompt = (duration < SHORT).then(crate::priority::PromptTimers::begin);
        crate::sync::thread::sleep(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_time_does_not_go_back() {
        let clock = SystemClock::default();
        let before = clock.monotonic();
        assert!(clock.monotonic() >= before);
    }
}
