//! [`AheadClock`]: the system's clock with a wall-clock time that can be moved ahead so that items expire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alluvium_io::{Clock, SystemClock};

/// The system's clock, with its wall-clock time moved ahead.
#[derive(Debug, Default)]
pub struct AheadClock {
    system: SystemClock,
    ahead_ms: AtomicU64,
}

impl AheadClock {
    /// Advances the wall-clock time.
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
