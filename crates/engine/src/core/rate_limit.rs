//! A bound on the bytes that merges write, which leaves the device to others.

use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes are paid for in pieces of this size.
const PIECE_BYTES: u64 = 256 << 10;

/// How often a waiting thread checks whether the limit was changed or ended.
const WAIT_MAX: Duration = Duration::from_millis(10);

/// Delays threads that write, so that at most a fixed number of bytes per second is written.
#[derive(Debug, Default)]
pub(crate) struct RateLimit {
    /// 0 means no limit.
    bytes_per_s: AtomicU64,
    owed: AtomicU64,
    /// When the last piece was paid off.
    paid_until: Mutex<Duration>,
    /// Whether the limit has ended for good, whatever is set.
    is_ended: AtomicBool,
}

impl RateLimit {
    /// Sets the limit; 0 means none.
    pub fn set(&self, bytes_per_s: u64) {
        self.bytes_per_s.store(bytes_per_s, Ordering::Relaxed);
        // Debt under another limit is forgiven.
        *self.paid_until.lock().expect("no panic while held") = Duration::ZERO;
    }

    /// Ends the limit for good, also for waiting threads.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Release);
        self.set(0);
    }

    /// Pays for `bytes` about to be written; waits when enough of them have accumulated.
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
            // Time in which nothing was written gives no credit.
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
