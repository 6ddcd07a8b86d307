//! [`Pause`]: a time in which clients wait (`CLIENT PAUSE`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Which commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paused {
    All,
    Writes,
}

/// Whether commands wait, and until when. It orders no other memory, so all is relaxed: commands that are read at the
/// moment of the change may or may not wait.
#[derive(Debug)]
pub(crate) struct Pause {
    started: Instant,
    /// Milliseconds after the start, 0 if there is no pause.
    until_ms: AtomicU64,
    writes_only: AtomicBool,
}

impl Default for Pause {
    fn default() -> Self {
        Self { started: Instant::now(), until_ms: AtomicU64::default(), writes_only: AtomicBool::default() }
    }
}

impl Pause {
    /// Pauses for this long, or longer if it was so before.
    pub(crate) fn begin(&self, duration: Duration, paused: Paused) {
        let now_ms = self.started.elapsed().as_millis() as u64;
        let end_ms = now_ms.saturating_add(duration.as_millis() as u64);
        let was_all = self.remaining().is_some() && !self.writes_only.load(Ordering::Relaxed);
        self.writes_only.store(paused == Paused::Writes && !was_all, Ordering::Relaxed);
        self.until_ms.fetch_max(end_ms, Ordering::Relaxed);
    }

    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    /// What waits now.
    #[inline]
    pub(crate) fn paused(&self) -> Option<Paused> {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.remaining()?;
        Some(if self.writes_only.load(Ordering::Relaxed) { Paused::Writes } else { Paused::All })
    }

    /// How long the pause will last.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let until = Duration::from_millis(self.until_ms.load(Ordering::Relaxed));
        until.checked_sub(self.started.elapsed()).filter(|remaining| !remaining.is_zero())
    }
}
