//! Slows writers smoothly before limits are reached, so that none is stopped abruptly.

use std::time::Duration;

use alluvium_io::Clock;
use alluvium_io::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use alluvium_model::merge_delay_ns;

use crate::wait::Wait;

/// Lengths of sleeps: delays accumulate until they are worth the shortest one, and a put sleeps no longer than the
/// longest one unless its own delay is longer.
#[derive(Debug, Clone, Copy)]
struct Sleeps {
    shortest_ns: i64,
    longest_ns: i64,
}

/// With one writer, since puts that sleep then take longer than any other put. With the delay of a timer they take just
/// under 100 µs. Shorter sleeps cost merges the processor: 20 µs takes 15 % of the rate.
const ALONE: Sleeps = Sleeps { shortest_ns: 50_000, longest_ns: 60_000 };
/// With several writers, which wait for processors longer than that, and to which each sleep costs a switch of threads.
const SHARED: Sleeps = Sleeps { shortest_ns: 200_000, longest_ns: 4_000_000 };
/// The longest sleep of one call, even if its delay is longer. The rest is left to others.
const CALL_NS_MAX: i64 = 4_000_000;
/// Maximum time of sleeps beyond their length that shortens later ones.
const CREDIT_NS_MAX: i64 = 1_000_000;

/// The delay of each put, determined by the backlog of background work.
///
/// Three backlogs count: garbage in blob files, which delays only large items; frozen log segments that wait for
/// conversion; and items in hash runs beyond the plan's share. Each delay grows continuously from zero, so the rate of
/// writes settles where background work keeps up. A conversion takes at least a few milliseconds, even for little data,
/// so with small segments each put is delayed more.
///
/// Sleeps are short, and end late, since that takes a timer and a processor. With one writer later sleeps are shorter
/// by what they were too long; the others wrote meanwhile if there are several.
#[derive(Debug)]
pub(crate) struct Throttle {
    delay_ns: AtomicU64,
    /// Negative after sleeps that were too long.
    owed_ns: AtomicI64,
    /// Whether other writers wrote during the last sleep of one.
    is_shared: AtomicBool,
    /// Delay per mebibyte of large items.
    mebibyte_delay_ns: AtomicU64,
    segment_bytes: AtomicU64,
    /// Whether delays have ended.
    is_ended: AtomicBool,
    /// The sleeps of writers.
    pub waits: Wait,
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
            owed_ns: AtomicI64::new(0),
            is_shared: AtomicBool::new(false),
            mebibyte_delay_ns: zero(),
            segment_bytes: AtomicU64::new(segment_bytes),
            is_ended: AtomicBool::new(false),
            waits: Wait::default(),
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
        let debt = i64::try_from(debt_ns).unwrap_or(i64::MAX).min(CALL_NS_MAX);
        let owed = self.owed_ns.fetch_add(debt, Ordering::Relaxed) + debt;
        let sleeps = if self.is_shared.load(Ordering::Relaxed) { SHARED } else { ALONE };
        if owed < sleeps.shortest_ns || self.is_ended.load(Ordering::Relaxed) {
            return;
        }
        let taken = owed.min(debt.max(sleeps.longest_ns));
        // Another writer may have taken the debt meanwhile; then that writer sleeps for it.
        let claimed = |now: i64| (now >= taken).then_some(now - taken);
        let Ok(before) = self.owed_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claimed) else {
            return;
        };
        let left = before - taken;
        let start = clock.monotonic();
        clock.sleep(Duration::from_nanos(taken as u64));
        let slept = clock.monotonic().saturating_sub(start);
        self.waits.add(slept);
        let over = i64::try_from(slept.as_nanos()).unwrap_or(i64::MAX).saturating_sub(taken).max(0);
        let credited = left.saturating_sub(over).max(left.min(-CREDIT_NS_MAX));
        let alone = self.owed_ns.compare_exchange(left, credited, Ordering::Relaxed, Ordering::Relaxed);
        self.is_shared.store(alone.is_err(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use alluvium_io::SimulatedClock;

    use super::*;

    /// A clock whose sleeps end late.
    #[derive(Debug, Default)]
    struct LateClock {
        clock: SimulatedClock,
        late: Duration,
    }

    impl Clock for LateClock {
        fn monotonic(&self) -> Duration {
            self.clock.monotonic()
        }

        fn unix(&self) -> Duration {
            self.clock.unix()
        }

        fn sleep(&self, duration: Duration) {
            self.clock.advance(duration + self.late);
        }
    }

    #[test]
    fn sleeps_are_short_and_take_no_longer_together_than_the_delays() {
        for late_us in [0, 10, 70, 300] {
            let clock = LateClock { late: Duration::from_micros(late_us), ..LateClock::default() };
            let throttle = Throttle::new(64 << 20);
            throttle.update(2, 0.0, 1.0);
            let puts = 100_000;
            (0..puts).for_each(|_| throttle.pay(1, &clock));
            let (slept, delays) = (clock.monotonic().as_nanos() as u64, puts * throttle.delay_ns());
            assert!(slept.abs_diff(delays) <= CREDIT_NS_MAX as u64, "{slept} of {delays}");
            let longest_ns = throttle.waits.stats().longest_ns;
            assert!(longest_ns <= ALONE.longest_ns as u64 + late_us * 1_000, "{longest_ns}");
        }
    }

    #[test]
    fn a_large_batch_sleeps_for_itself() {
        let (clock, throttle) = (SimulatedClock::default(), Throttle::new(64 << 20));
        throttle.update(2, 0.0, 1.0);
        throttle.pay(1_000, &clock);
        assert_eq!(clock.monotonic(), Duration::from_millis(3));
        throttle.pay(10_000, &clock);
        assert_eq!(clock.monotonic(), Duration::from_millis(7));
    }

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
