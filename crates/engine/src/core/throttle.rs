//! Slows writers smoothly before limits are reached, so that none is stopped abruptly.

use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use alluvium_model::merge_delay_ns;

/// Delays accumulate until they are worth a sleep of this length.
const SLEEP_NS_MIN: u64 = 200_000;
/// The longest single sleep.
const SLEEP_NS_MAX: u64 = 4_000_000;

/// The delay of each put, determined by the backlog of background work.
///
/// Three backlogs count: garbage in blob files, which delays only large items; frozen log segments that wait for
/// conversion; and items in hash runs beyond the plan's share. Each delay grows continuously from zero, so the rate of
/// writes settles where background work keeps up. A conversion takes at least a few milliseconds, even for little data,
/// so with small segments each put is delayed more.
#[derive(Debug)]
pub(crate) struct Throttle {
    delay_ns: AtomicU64,
    owed_ns: AtomicU64,
    /// Delay per mebibyte of large items.
    mebibyte_delay_ns: AtomicU64,
    segment_bytes: AtomicU64,
    /// Whether delays have ended.
    is_ended: AtomicBool,
}

/// Size of segments from which on the delay for waiting segments does not depend on the size.
const SEGMENT_BYTES_LARGE: f64 = 16.0 * 1024.0 * 1024.0;
/// Maximum factor by which the delay for waiting segments increases with small segments.
const SMALLNESS_MAX: f64 = 64.0;

impl Throttle {
    /// No delay yet, for log segments of this size.
    pub fn new(segment_bytes: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            delay_ns: zero(),
            owed_ns: zero(),
            mebibyte_delay_ns: zero(),
            segment_bytes: AtomicU64::new(segment_bytes),
            is_ended: AtomicBool::new(false),
        }
    }

    /// Ends all delays.
    pub fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
    }

    /// Sets the size of log segments.
    pub fn set_segment_bytes(&self, bytes: u64) {
        self.segment_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Recomputes the delay. `frozen` is the number of segments that wait for conversion, `fill` is how full the active
    /// one is (0 to 1), `pressure` is how far hash runs exceed their share (above 1).
    pub fn update(&self, frozen: usize, fill: f64, pressure: f64) {
        let conversion_ns = match frozen {
            0 => 0.0,
            1 => 3_000.0 * (fill - 0.5).max(0.0),
            waiting => 6_000.0 * (waiting - 1) as f64 * (0.5 + fill),
        };
        let segment_bytes = self.segment_bytes.load(Ordering::Relaxed) as f64;
        let smallness = (SEGMENT_BYTES_LARGE / segment_bytes.max(1.0)).clamp(1.0, SMALLNESS_MAX);
        let merge_ns = merge_delay_ns(pressure);
        self.delay_ns.store((conversion_ns * smallness + merge_ns) as u64, Ordering::Relaxed);
    }

    /// Recomputes the delay of large items. `pressure` is garbage in blob files in relation to the target of
    /// collection: above 1 files are emptied.
    pub fn update_large(&self, pressure: f64) {
        let over = (pressure - 1.2).clamp(0.0, 2.0);
        self.mebibyte_delay_ns.store((40e6 * over * over) as u64, Ordering::Relaxed);
    }

    /// Delays the calling writer for `bytes` of a large item.
    #[inline]
    pub fn pay_large(&self, bytes: u64, clock: &dyn Clock) {
        let delay = self.mebibyte_delay_ns.load(Ordering::Relaxed);
        if delay > 0 {
            self.pay_slowly((delay * bytes) >> 20, clock);
        }
    }

    /// The delay of one put, in nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.delay_ns.load(Ordering::Relaxed)
    }

    /// Delays the calling writer for `puts` puts.
    #[inline]
    pub fn pay(&self, puts: u64, clock: &dyn Clock) {
        let delay = self.delay_ns.load(Ordering::Relaxed);
        if delay > 0 {
            self.pay_slowly(delay * puts, clock);
        }
    }

    #[cold]
    fn pay_slowly(&self, debt_ns: u64, clock: &dyn Clock) {
        let owed = self.owed_ns.fetch_add(debt_ns, Ordering::Relaxed) + debt_ns;
        if owed >= SLEEP_NS_MIN && !self.is_ended.load(Ordering::Relaxed) {
            let taken = owed.min(SLEEP_NS_MAX);
            // Another writer may have taken the debt meanwhile; then that writer sleeps for it.
            let claimed = self
                .owed_ns
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| now.checked_sub(taken))
                .is_ok();
            if claimed {
                clock.sleep(Duration::from_nanos(taken));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_start_at_zero_and_grow_without_steps() {
        let throttle = Throttle::new(64 << 20);
        throttle.update(0, 1.0, 1.0);
        assert_eq!(throttle.delay_ns(), 0);
        let mut last = 0;
        for step in 0..400 {
            throttle.update(0, 0.0, 1.0 + f64::from(step) / 200.0);
            let delay = throttle.delay_ns();
            assert!(delay >= last && delay - last < 2_000, "{last} to {delay}");
            last = delay;
        }
        assert!(last > 50_000);
        throttle.update(3, 1.0, 0.0);
        assert!(throttle.delay_ns() > 10_000);
        let mut last = 0;
        for step in 0..400 {
            throttle.update_large(1.0 + f64::from(step) / 100.0);
            let delay = throttle.mebibyte_delay_ns.load(Ordering::Relaxed);
            assert!(delay >= last && delay - last < 2_000_000, "{last} to {delay}");
            assert!(step > 20 || delay == 0);
            last = delay;
        }
        assert!(last > 100_000_000);
    }
}
