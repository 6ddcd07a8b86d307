//! A clock that can be set forward and back while the database uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use alluvium_io::{Clock, SystemClock};

/// Maximum deviation of the clock, in milliseconds.
pub const SKEW_MS_MAX: i64 = 3_000;

/// The system's clock with an offset. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    system: SystemClock,
    skew_ms: Arc<AtomicI64>,
    /// Whether the clock of this database ever deviates.
    may_be_off: bool,
}

impl Watch {
    pub fn new(may_be_off: bool) -> Self {
        Self { may_be_off, ..Self::default() }
    }

    /// Sets the clock `ms` before or after the system's.
    pub fn set_skew_ms(&self, ms: i64) {
        if self.may_be_off {
            self.skew_ms.store(ms.clamp(-SKEW_MS_MAX, SKEW_MS_MAX), Ordering::SeqCst);
        }
    }

    /// The clock's time, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.unix().as_millis() as u64
    }

    /// A time that the database has seen, or will see when it next reads the clock.
    pub fn earliest(&self) -> u64 {
        if self.may_be_off { self.system_ms().saturating_sub(SKEW_MS_MAX as u64) } else { self.system_ms() }
    }

    /// A time that the database has not seen yet.
    pub fn latest(&self) -> u64 {
        if self.may_be_off { self.system_ms() + SKEW_MS_MAX as u64 } else { self.system_ms() + 1 }
    }

    fn system_ms(&self) -> u64 {
        self.system.unix().as_millis() as u64
    }
}

impl Clock for Watch {
    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn unix(&self) -> Duration {
        let (system, skew) = (self.system.unix(), self.skew_ms.load(Ordering::SeqCst));
        let by = Duration::from_millis(skew.unsigned_abs());
        if skew < 0 { system.saturating_sub(by) } else { system + by }
    }

    fn sleep(&self, duration: Duration) {
        self.system.sleep(duration);
    }
}
