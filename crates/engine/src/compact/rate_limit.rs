//! A bound on what merges write, so that they leave the device to others.

use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes are paid for in pieces of this size.
const PIECE_BYTES: u64 = 256 << 10;

/// Whoever waits looks so often whether the limit has changed or ended.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Delays whoever pays, so that no more than so many bytes a second are paid for.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// 0: no limit.
    bytes_per_s: AtomicU64,
    owed: AtomicU64,
    /// When the last piece was paid off.
    paid_until: Mutex<Duration>,
    /// Whether there is no limit any more, whatever is set.
    is_ended: AtomicBool,
}

impl RateLimit {
    /// A limit from now on; 0 is none.
    pub fn set(&self, bytes_per_s: u64) {
        self.bytes_per_s.store(bytes_per_s, Ordering::Relaxed);
        // What was owed under another limit is forgiven.
        *self.paid_until.lock().expect("no panic while held") = Duration::ZERO;
    }

    /// Ends the limit for good, also for those who wait.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.set(0);
    }

    /// Pays for `bytes` about to be written; waits when many have gathered.
    #[inline]
    pub fn pay(&self, bytes: u64, clock: &dyn Clock) {
        let rate = self.bytes_per_s.load(Ordering::Relaxed);
        if rate > 0 && self.owed.fetch_add(bytes, Ordering::Relaxed) + bytes >= PIECE_BYTES {
            self.pay_off(rate, clock);
        }
    }

    #[cold]
    fn pay_off(&self, rate: u64, clock: &dyn Clock) {
        let bytes = self.owed.swap(0, Ordering::Relaxed);
        let wait = {
            let mut paid_until = self.paid_until.lock().expect("no panic while held");
            let now = clock.monotonic();
            // Time in which nothing was written is not saved up.
            *paid_until = (*paid_until).max(now) + Duration::from_secs_f64(bytes as f64 / rate as f64);
            paid_until.saturating_sub(now)
        };
        let until = clock.monotonic() + wait;
        while !self.is_ended.load(Ordering::Acquire) && self.bytes_per_s.load(Ordering::Relaxed) == rate {
            let left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return;
            }
            clock.sleep(left.min(WAIT_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_io::SimulatedClock;

    #[test]
    fn bytes_take_as_long_as_the_rate_says() {
        let (limit, clock) = (RateLimit::default(), SimulatedClock::default());
        limit.pay(u64::MAX / 2, &clock);
        assert_eq!(clock.monotonic(), Duration::ZERO);
        limit.set(1 << 20);
        for _ in 0..4096 {
            limit.pay(1 << 10, &clock);
        }
        assert_eq!(clock.monotonic(), Duration::from_secs(4));
        clock.advance(Duration::from_secs(100));
        (0..1024).for_each(|_| limit.pay(1 << 10, &clock));
        assert_eq!(clock.monotonic(), Duration::from_secs(105));
    }
    #[test]
    fn nobody_waits_for_a_limit_that_has_ended() {
        let (limit, clock) = (RateLimit::default(), SimulatedClock::default());
        limit.set(1);
        limit.end();
        limit.pay(1 << 30, &clock);
        limit.set(1);
        limit.pay(1 << 30, &clock);
        assert_eq!(clock.monotonic(), Duration::ZERO);
    }
}
