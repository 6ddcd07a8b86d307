//! [`AheadClock`]: the system's clock, from which wall-clock time can be moved ahead so that items expire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_io::{Clock, SystemClock};

/// The system's clock with its wall-clock time so far ahead.
#[derive(Debug, Default)]
pub struct AheadClock {
    system: SystemClock,
    ahead_ms: AtomicU64,
}

impl AheadClock {
    /// Moves wall-clock time on.
    pub fn advance(&self, duration: Duration) {
        self.ahead_ms.fetch_add(duration.as_millis() as u64, Ordering::Relaxed);
    }
}

impl Clock for AheadClock {
    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn unix(&self) -> Duration {
        self.system.unix() + Duration::from_millis(self.ahead_ms.load(Ordering::Relaxed))
    }

    fn sleep(&self, duration: Duration) {
        self.system.sleep(duration);
    }
}
