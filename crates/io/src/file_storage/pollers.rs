//! [`Pollers`]: the threads of a process that poll at a moment, of which there are few.

use std::time::{Duration, Instant};

use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Processors for each thread that polls.
const PROCESSORS_PER_PLACE: usize = 2;

/// How long nobody polls after another thread wanted the processor of one that did.
const PAUSE: Duration = Duration::from_millis(50);

/// Places for threads that poll.
///
/// Invariant: at most `places` of [`Place`] exist. The counter decides nothing else, so its order relative to other
/// memory doesn't matter.
#[derive(Debug)]
pub(super) struct Pollers {
    places: usize,
    /// Number of places taken, and of attempts to take one that are about to fail.
    taken: AtomicUsize,
    /// Until when nobody polls, in nanoseconds since `start`.
    paused_until_ns: AtomicU64,
    start: Instant,
}

/// The right to poll, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Pollers);

impl Pollers {
    fn new(places: usize, start: Instant) -> Self {
        Self { places, taken: AtomicUsize::new(0), paused_until_ns: AtomicU64::new(0), start }
    }

    /// Those of this process: one place for two processors that it may use, and none if there is but one.
    pub(super) fn of_process() -> &'static Self {
        static POLLERS: OnceLock<Pollers> = OnceLock::new();
        POLLERS.get_or_init(|| {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            Self::new(processors / PROCESSORS_PER_PLACE, Instant::now())
        })
    }

    /// Takes a place; `None` if all are taken, or if others want the processors.
    pub(super) fn take(&self, now: Instant) -> Option<Place<'_>> {
        if self.taken.load(Ordering::Relaxed) >= self.places
            || self.ns(now) < self.paused_until_ns.load(Ordering::Relaxed)
        {
            return None;
        }
        if self.taken.fetch_add(1, Ordering::Relaxed) < self.places {
            return Some(Place(self));
        }
        self.taken.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// Lets nobody begin to poll for a while.
    pub(super) fn pause(&self, now: Instant) {
        self.paused_until_ns.store(self.ns(now + PAUSE), Ordering::Relaxed);
    }

    fn ns(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.start).as_nanos() as u64
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_and_come_back() {
        let now = Instant::now();
        let pollers = Pollers::new(2, now);
        let first = pollers.take(now).unwrap();
        let second = pollers.take(now).unwrap();
        assert!(pollers.take(now).is_none());
        drop(first);
        let third = pollers.take(now).unwrap();
        assert!(pollers.take(now).is_none());
        drop((second, third));
        assert!(pollers.take(now).is_some());
        assert!(Pollers::new(0, now).take(now).is_none());
    }

    #[test]
    fn nobody_polls_during_a_pause() {
        let start = Instant::now();
        let pollers = Pollers::new(1, start);
        pollers.pause(start);
        assert!(pollers.take(start + PAUSE / 2).is_none());
        assert!(pollers.take(start + PAUSE).is_some());
    }

    #[test]
    fn threads_never_have_more_places_than_there_are() {
        let pollers = Pollers::new(2, Instant::now());
        let polling = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(place) = pollers.take(Instant::now()) {
                            assert!(polling.fetch_add(1, Ordering::SeqCst) < 2);
                            std::thread::yield_now();
                            polling.fetch_sub(1, Ordering::SeqCst);
                            drop(place);
                        }
                    }
                });
            }
        });
        assert_eq!(pollers.taken.load(Ordering::SeqCst), 0);
    }
}
