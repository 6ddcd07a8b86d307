//! [`WallClock`]: expiry by the time of day.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alluvium_cache::Clock;

/// The machine's clock, except that it does not go back: an item that was seen to be expired stays absent.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    latest_ms: AtomicU64,
}

impl Clock for WallClock {
    /// Milliseconds since 1970.
    fn monotonic(&self) -> Duration {
        let now_ms = u64::try_from(self.unix().as_millis()).unwrap_or(u64::MAX);
        let latest_ms = self.latest_ms.load(Ordering::Relaxed);
        if now_ms > latest_ms {
            self.latest_ms.fetch_max(now_ms, Ordering::Relaxed);
        }
        Duration::from_millis(now_ms.max(latest_ms))
    }

    fn unix(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
