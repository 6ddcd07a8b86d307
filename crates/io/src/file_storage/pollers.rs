//! [`Place`]: the right to poll, of which a process has few.

use std::time::{Duration, Instant};

use crate::sync::OnceLock;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Processors for one thread that polls.
const PROCESSORS_PER_PLACE: usize = 2;

/// How long nobody polls after another thread had waited for the processor of one that did.
const PAUSE: Duration = Duration::from_millis(50);

/// Number of threads that poll. A count and nothing more, so its order relative to other memory doesn't matter.
static POLLING: AtomicUsize = AtomicUsize::new(0);

/// Until when nobody polls, in nanoseconds since the first use.
static PAUSED_UNTIL_NS: AtomicU64 = AtomicU64::new(0);

/// The right to poll, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place(());

impl Place {
    /// Takes a place; `None` if all are taken, or processors are wanted by others.
    pub(super) fn take(now: Instant) -> Option<Self> {
        if POLLING.load(Ordering::Relaxed) >= places() || ns(now) < PAUSED_UNTIL_NS.load(Ordering::Relaxed) {
            return None;
        }
        let place = Self(());
        (POLLING.fetch_add(1, Ordering::Relaxed) < places()).then_some(place)
    }

    /// Ends all polling for a while: another thread wants the processor.
    pub(super) fn give_way(now: Instant) {
        PAUSED_UNTIL_NS.store(ns(now + PAUSE), Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        POLLING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Number of places: none on a single processor.
fn places() -> usize {
    static PLACES: OnceLock<usize> = OnceLock::new();
    *PLACES.get_or_init(|| {
        let processors = crate::sync::thread::available_parallelism().map_or(1, usize::from);
        processors / PROCESSORS_PER_PLACE
    })
}

fn ns(time: Instant) -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    time.saturating_duration_since(*START.get_or_init(|| time)).as_nanos() as u64
}
