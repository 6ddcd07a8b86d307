//! [`Saves`]: when the store was saved, and whether it is being saved now.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What is known about saves. One is in progress at a time.
pub(crate) struct Saves(Mutex<State>);

#[derive(Clone, Debug)]
pub(crate) struct State {
    /// When the save in progress began.
    pub(crate) begun: Option<Instant>,
    /// When the last save ended that succeeded, or the server started, in seconds since 1970.
    pub(crate) saved_at_s: u64,
    /// How long the last save took.
    pub(crate) duration: Option<Duration>,
    /// Whether the last one failed.
    pub(crate) has_failed: bool,
    /// Number of saves that succeeded.
    pub(crate) count: u64,
    /// The number of changes of the store that the last save has, or that there were at the start.
    pub(crate) changes: u64,
}

impl Saves {
    /// At the start of the server, when the store has counted this many changes.
    pub(crate) fn new(changes: u64) -> Self {
        Self(Mutex::new(State {
            begun: None,
            saved_at_s: now_s(),
            duration: None,
            has_failed: false,
            count: 0,
            changes,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self) -> State {
        self.lock().clone()
    }

    /// Begins a save; returns `false` if one is in progress.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.lock();
        let is_free = state.begun.is_none();
        if is_free {
            state.begun = Some(Instant::now());
        }
        is_free
    }

    /// Ends the save in progress, which has this number of changes unless it failed.
    pub(crate) fn end(&self, changes: Option<u64>) {
        let mut state = self.lock();
        state.duration = state.begun.take().map(|begun| begun.elapsed());
        state.has_failed = changes.is_none();
        if let Some(changes) = changes {
            state.saved_at_s = now_s();
            state.count += 1;
            state.changes = changes;
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::Saves;

    #[test]
    fn one_save_at_a_time_and_failures_are_noted() {
        let saves = Saves::new(7);
        assert!(saves.begin() && !saves.begin());
        saves.end(None);
        assert!(saves.state().has_failed && saves.state().count == 0 && saves.state().changes == 7);
        assert!(saves.begin());
        saves.end(Some(9));
        let state = saves.state();
        assert!(!state.has_failed && state.begun.is_none() && state.duration.is_some());
        assert_eq!((state.count, state.changes), (1, 9));
    }
}
