//! What becomes of failures: which are tried again, which wait for space, which are final
//! ([decision 0048](../../../../docs/decisions/0048-errors-by-class.md)).

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use serde::Serialize;

use super::shared::Shared;
use crate::error::{Error, Result};
use crate::failure::{FailureClass, class_of};
use crate::log::Refusal;
use crate::manifest::Edit;

/// Pauses between attempts: the first, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// After so many attempts of what makes room, writers are no longer held until it succeeds.
const PATIENT_ATTEMPTS: u32 = 3;

/// Failures that were no end, and background work that is about to be tried again.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// By the name of the thread.
    retrying: Mutex<BTreeMap<&'static str, Retry>>,
    retries: AtomicU64,
    times_resumed: AtomicU64,
}

/// Background work that fails.
#[derive(Debug, Clone)]
pub(crate) struct Retry {
    pub reason: String,
    pub attempts: u32,
}

/// Failures since the database was opened that it could leave behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FailureStats {
    /// Pieces of background work that failed and were, or will be, tried again.
    pub retries: u64,
    /// Times that the disk was found full.
    pub times_full: u64,
    /// Times that writes were taken again because there was space.
    pub times_resumed: u64,
}

/// The pause after so many attempts that failed.
pub(crate) fn pause_after(attempts: u32) -> Duration {
    (PAUSE_MIN * 2u32.saturating_pow(attempts.saturating_sub(1).min(16))).min(PAUSE_MAX)
}

impl Failures {
    /// Notes that the work of a thread failed and will be tried again; returns the attempts that failed in a row.
    pub fn begin_retry(&self, thread: &'static str, error: &Error) -> u32 {
        self.retries.fetch_add(1, Ordering::Relaxed);
        let mut retrying = self.retrying.lock().expect("no panic while held");
        let attempts = retrying.get(thread).map_or(0, |retry| retry.attempts).saturating_add(1);
        retrying.insert(thread, Retry { reason: error.to_string(), attempts });
        attempts
    }

    /// Notes that the work of a thread succeeded.
    pub fn end_retry(&self, thread: &'static str) {
        self.retrying.lock().expect("no panic while held").remove(thread);
    }

    /// The work that fails most often in a row.
    pub fn worst(&self) -> Option<Retry> {
        let retrying = self.retrying.lock().expect("no panic while held");
        retrying.values().max_by_key(|retry| retry.attempts).cloned()
    }

    /// An error when background work failed so often in a row that nobody should wait for it.
    pub fn check_progress(&self) -> Result<()> {
        match self.worst() {
            Some(Retry { reason, attempts }) if attempts >= PATIENT_ATTEMPTS => {
                Err(Error::Stalled { reason })
            }
            _ => Ok(()),
        }
    }
}

impl Shared {
    /// Why no writes are taken that need space, as an error.
    #[inline]
    pub fn check_failure(&self) -> Result<()> {
        match self.log.refusal() {
            Some(refusal) => Err(refusal.error()),
            None => Ok(()),
        }
    }

    /// Why not even removals are taken, as an error: a full disk is no reason.
    #[inline]
    pub fn check_refusal(&self) -> Result<()> {
        match self.log.refusal() {
            None | Some(Refusal::Full { .. }) => Ok(()),
            Some(refusal) => Err(refusal.error()),
        }
    }

    /// Draws the consequences of a failure, by its class; returns it as a user is to see it.
    pub fn note_failure(&self, error: Error) -> Error {
        if matches!(error, Error::Closed) {
            // Work that was given up.
            return error;
        }
        match class_of(&error) {
            FailureClass::Passing => error,
            FailureClass::Full => self.log.set_full(&error),
            FailureClass::Final => {
                self.log.fail(&error);
                error
            }
        }
    }

    /// What failed and was left behind since the opening.
    pub fn failure_stats(&self) -> FailureStats {
        FailureStats {
            retries: self.failures.retries.load(Ordering::Relaxed),
            times_full: self.log.times_full(),
            times_resumed: self.failures.times_resumed.load(Ordering::Relaxed),
        }
    }

    /// Appends edits to the manifest, durably, if need be with the space that is reserved. A failure fails the
    /// database, unless only space was missing.
    pub fn append_edits(&self, edits: &[Edit]) -> Result<()> {
        let mut manifest = self.manifest.lock().expect("no panic while held");
        let edits = &self.blobs.with_durable_ends(edits);
        let mut appended = manifest.append(edits);
        if let Err(error) = &appended
            && class_of(error) == FailureClass::Full
        {
            self.log.set_full(error);
            if self.reserve.release() {
                appended = manifest.append(edits);
            }
        }
        drop(manifest);
        appended.map_err(|error| self.note_failure(error))?;
        self.measure_disk();
        Ok(())
    }

    /// Takes writes again if there is space.
    ///
    /// # Errors
    /// [`Error::DiskFull`] when there is not: nothing has changed then.
    pub fn try_to_resume(&self) -> Result<()> {
        self.reserve.take().map_err(|error| self.note_failure(error))?;
        self.log.end_full();
        // Nothing is lost: what could not be written is in memory still.
        self.log.commit_all().map_err(|error| self.note_failure(error))?;
        self.failures.times_resumed.fetch_add(1, Ordering::Relaxed);
        self.scheduler.end_pauses();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_their_bound() {
        let pauses: Vec<u128> = (1..10).map(|attempts| pause_after(attempts).as_millis()).collect();
        assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1280, 2000, 2000]);
        assert_eq!(pause_after(u32::MAX), PAUSE_MAX);
    }

    #[test]
    fn writers_wait_for_a_few_attempts_and_no_more() {
        let failures = Failures::default();
        let error = Error::Stalled { reason: "no descriptors".to_owned() };
        for attempts in 1..=PATIENT_ATTEMPTS {
            assert!(failures.check_progress().is_ok());
            assert_eq!(failures.begin_retry("convert", &error), attempts);
        }
        assert!(matches!(failures.check_progress(), Err(Error::Stalled { .. })));
        failures.end_retry("convert");
        assert!(failures.check_progress().is_ok() && failures.worst().is_none());
        assert_eq!(failures.retries.load(Ordering::Relaxed), u64::from(PATIENT_ATTEMPTS));
    }
}
