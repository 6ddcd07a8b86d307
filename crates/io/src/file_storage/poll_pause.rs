//! [`PollPause`]: when the threads of a process don't poll, because others want the processors.

use std::time::{Duration, Instant};

use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicU64, Ordering};

/// How long nobody polls after another thread wanted the processor of one that did.
const PAUSE: Duration = Duration::from_millis(500);

/// A clock that all threads share, and until when none of them polls. The time decides nothing else, so its order
/// relative to other memory doesn't matter.
#[derive(Debug)]
pub(super) struct PollPause {
    start: Instant,
    /// In nanoseconds since `start`.
    until_ns: AtomicU64,
}

impl PollPause {
    fn new(start: Instant) -> Self {
        Self { start, until_ns: AtomicU64::new(0) }
    }

    /// That of this process.
    pub(super) fn of_process() -> &'static Self {
        static PAUSE: OnceLock<PollPause> = OnceLock::new();
        PAUSE.get_or_init(|| Self::new(Instant::now()))
    }

    /// Nanoseconds from the first use to `time`.
    pub(super) fn time_ns(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Whether nobody polls at this time.
    pub(super) fn includes(&self, time_ns: u64) -> bool {
        time_ns < self.until_ns.load(Ordering::Relaxed)
    }

    /// Begins a pause.
    pub(super) fn begin(&self, now: Instant) {
        self.until_ns.store(self.time_ns(now + PAUSE), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends() {
        let start = Instant::now();
        let pause = PollPause::new(start);
        let pauses = |since_start| pause.includes(pause.time_ns(start + since_start));
        assert!(!pauses(Duration::ZERO));
        pause.begin(start);
        assert!(pauses(Duration::ZERO) && pauses(PAUSE / 2));
        assert!(!pauses(PAUSE));
    }
}
