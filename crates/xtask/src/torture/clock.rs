//! A clock that may be set back and forth under the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use alluvium_io::{Clock, SystemClock};

/// How far the clock may be off, in milliseconds.
pub const SKEW_MS_MAX: i64 = 3_000;

/// The system's clock, some milliseconds off. Clones are the same clock.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    system: SystemClock,
    skew_ms: Arc<AtomicI64>,
    /// Whether the clock of this database was ever off, or will be.
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

    /// The time that the clock shows, in milliseconds since 1970.
    pub fn now_ms(&self) -> u64 {
        self.unix().as_millis() as u64
    }

    /// A time that the database has seen, or will see at its next look.
    pub fn earliest(&self) -> u64 {
        if self.may_be_off { self.system_ms().saturating_sub(SKEW_MS_MAX as u64) } else { self.system_ms() }
    }

    /// A time that the database has not seen.
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
