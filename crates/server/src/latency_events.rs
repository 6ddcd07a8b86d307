//! [`LatencyEvents`]: when something took longer than a threshold (`LATENCY`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Maximum number of samples kept of an event.
const SAMPLES_MAX: usize = 160;

/// Something that took long: when, in seconds since 1970, and how long, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) at_s: u64,
    pub(crate) ms: u64,
}

/// The samples of one kind of event, the oldest first; at least one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Event {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) max_ms: u64,
}

#[derive(Default)]
pub(crate) struct LatencyEvents {
    /// Milliseconds from which on a sample is kept; 0 keeps none.
    threshold_ms: AtomicU64,
    events: Mutex<BTreeMap<&'static str, Event>>,
}

impl LatencyEvents {
    pub(crate) fn threshold_ms(&self) -> u64 {
        self.threshold_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn set_threshold_ms(&self, threshold_ms: u64) {
        self.threshold_ms.store(threshold_ms, Ordering::Relaxed);
    }

    /// Whether an event that took this long is kept.
    #[inline]
    pub(crate) fn keeps(&self, duration: Duration) -> bool {
        let threshold_ms = self.threshold_ms();
        threshold_ms > 0 && duration >= Duration::from_millis(threshold_ms)
    }

    /// Of events in one second, the longest is kept.
    pub(crate) fn add(&self, event: &'static str, duration: Duration) {
        let at_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let mut events = self.events();
        let Event { samples, max_ms } = events.entry(event).or_default();
        *max_ms = ms.max(*max_ms);
        match samples.back_mut() {
            Some(last) if last.at_s == at_s => last.ms = ms.max(last.ms),
            _ => samples.push_back(Sample { at_s, ms }),
        }
        if samples.len() > SAMPLES_MAX {
            samples.pop_front();
        }
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, Event)> {
        self.events().iter().map(|(name, event)| (*name, event.clone())).collect()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Event> {
        self.events().iter().find(|(known, _)| known.as_bytes() == name).map(|(_, event)| event.clone())
    }

    /// Forgets the events of these names, or all; returns their number.
    pub(crate) fn forget(&self, names: Option<&[&[u8]]>) -> usize {
        let mut events = self.events();
        let before = events.len();
        events.retain(|name, _| names.is_some_and(|names| !names.contains(&name.as_bytes())));
        before - events.len()
    }

    fn events(&self) -> MutexGuard<'_, BTreeMap<&'static str, Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
