//! Handles failures: which work is tried again, which waits for space, which failures are final ([decision
//! 0048](../../../../docs/decisions/0048-errors-by-class.md)).

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};

use super::JobThread;
use super::shared::Shared;
use crate::error::{Error, IoContext, Result};
use crate::failure::{FailureClass, class_of, lacks_space};
use crate::log::Refusal;
use crate::manifest::Edit;

/// Minimum and maximum pause between attempts.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// After this many failed attempts at work that makes room, writers no longer wait for it to succeed.
const PATIENT_ATTEMPTS: u32 = 3;
/// Work that lacked space is tried again after this time even without more space: it may need less by then.
const RETRY_WITHOUT_SPACE: Duration = Duration::from_secs(30);

/// Failures that were not final, and background work that is about to be tried again.
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
    /// The conditions of the latest attempt, if it lacked space.
    lack: Option<Lack>,
}

/// The conditions of an attempt that lacked space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lack {
    /// Bytes available before the attempt or after it, whichever was less; `None` if the storage cannot tell.
    available_bytes: Option<u64>,
    /// When it began, on the monotonic clock.
    began: Duration,
}

impl Retry {
    fn error(self) -> Error {
        let Self { reason, lack, .. } = self;
        if lack.is_some() { Error::DiskFull { reason } } else { Error::Stalled { reason } }
    }
}

/// Failures since the database was opened after which it continued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureStats {
    /// Number of pieces of background work that failed and were, or will be, tried again.
    pub retries: u64,
    /// How often the disk was found full.
    pub times_full: u64,
    /// How often writes were accepted again because there was space.
    pub times_resumed: u64,
}

/// The pause after this many failed attempts.
pub(crate) fn pause_after(attempts: u32) -> Duration {
    (PAUSE_MIN * 2u32.saturating_pow(attempts.saturating_sub(1).min(16))).min(PAUSE_MAX)
}

impl Failures {
    /// Notes that the work of a thread failed and will be tried again; returns the number of failed attempts in a row.
    /// `lack` holds the conditions of the attempt, if it lacked space.
    fn begin_retry(&self, thread: &'static str, error: &Error, lack: Option<Lack>) -> u32 {
        self.retries.fetch_add(1, Ordering::Relaxed);
        let mut retrying = self.retrying.lock().expect("no panic while held");
        let attempts = retrying.get(thread).map_or(0, |retry| retry.attempts).saturating_add(1);
        let reason = match error {
            Error::DiskFull { reason } => reason.clone(),
            error => error.to_string(),
        };
        retrying.insert(thread, Retry { reason, attempts, lack });
        attempts
    }

    /// Number of failed attempts of a thread in a row.
    pub fn attempts_of(&self, thread: &'static str) -> u32 {
        self.retry_of(thread).map_or(0, |retry| retry.attempts)
    }

    /// Counts an attempt that was skipped because it would fail like the previous one; returns the attempts in a
    /// row.
    pub fn leave_out_attempt(&self, thread: &'static str) -> u32 {
        let mut retrying = self.retrying.lock().expect("no panic while held");
        retrying.get_mut(thread).map_or(0, |retry| {
            retry.attempts = retry.attempts.saturating_add(1);
            retry.attempts
        })
    }

    /// The failed attempts of a thread in a row, if its work is failing.
    fn retry_of(&self, thread: &'static str) -> Option<Retry> {
        self.retrying.lock().expect("no panic while held").get(thread).cloned()
    }

    /// Notes that the work of a thread succeeded.
    fn end_retry(&self, thread: &'static str) {
        self.retrying.lock().expect("no panic while held").remove(thread);
    }

    /// The work with the most failed attempts in a row.
    pub fn worst(&self) -> Option<Retry> {
        let retrying = self.retrying.lock().expect("no panic while held");
        retrying.values().max_by_key(|retry| retry.attempts).cloned()
    }

    /// Whether some work lacked space at its latest attempt.
    fn is_one_without_space(&self) -> bool {
        let retrying = self.retrying.lock().expect("no panic while held");
        retrying.values().any(|retry| retry.lack.is_some())
    }

    /// The threads whose work failed so often in a row that callers should not wait for it.
    fn stalled(&self) -> Vec<&'static str> {
        let retrying = self.retrying.lock().expect("no panic while held");
        let stalled = retrying.iter().filter(|(_, retry)| retry.attempts >= PATIENT_ATTEMPTS);
        stalled.map(|(thread, _)| *thread).collect()
    }
}

impl Shared {
    /// Returns an error if writes that need space are refused.
    #[inline]
    pub fn check_failure(&self) -> Result<()> {
        match self.log.refusal() {
            Some(refusal) => Err(refusal.error()),
            None => Ok(()),
        }
    }

    /// Returns an error if even removals are refused; a full disk is no reason for that.
    #[inline]
    pub fn check_refusal(&self) -> Result<()> {
        match self.log.refusal() {
            None | Some(Refusal::Full { .. }) => Ok(()),
            Some(refusal) => Err(refusal.error()),
        }
    }

    /// Does a piece of a thread's work. Handles a failure by its class, and notes whether to try the work again.
    pub fn attempt(&self, thread: &'static str, work: impl FnOnce(&Self) -> Result<bool>) -> Result<bool> {
        let before = self.means_of_attempt();
        work(self).inspect(|_| self.failures.end_retry(thread)).map_err(|error| {
            let is_tried_again = class_of(&error) == FailureClass::Passing || lacks_space(&error);
            let error = self.note_failure(error);
            if is_tried_again {
                let lack = lacks_space(&error).then(|| self.lack_after(before));
                self.failures.begin_retry(thread, &error, lack);
            }
            error
        })
    }

    /// The conditions of an attempt at background work that begins now.
    fn means_of_attempt(&self) -> Lack {
        let available_bytes = self.storage.available_bytes().ok().flatten();
        Lack { available_bytes, began: self.clock.monotonic() }
    }

    /// Makes the space of removed files available: file systems keep it until the removal is durable.
    pub fn sync_removals(&self) -> Result<()> {
        self.reclaimer.drain();
        let synced = self.storage.sync_directory().context(|| "syncing the database directory".to_owned());
        synced.map_err(|error| self.note_failure(error))
    }

    /// Whether writes are refused, or background work waits, because the disk is full.
    pub fn is_short_of_space(&self) -> bool {
        matches!(self.log.refusal(), Some(Refusal::Full { .. })) || self.failures.is_one_without_space()
    }

    /// The conditions of a failed attempt that began under those of `before`. Removes first what it wrote.
    fn lack_after(&self, before: Lack) -> Lack {
        // A failure is noted. Without it, less is available, and the next attempt is earlier.
        let _ = self.sync_removals();
        let after = self.means_of_attempt().available_bytes;
        // Other programs may have taken space meanwhile, or freed it.
        Lack { available_bytes: before.available_bytes.min(after), ..before }
    }

    /// Whether another attempt at a thread's work may succeed: the latest one did not lack space, or more is available
    /// now. So no thread fills and empties the device repeatedly.
    pub fn may_succeed(&self, thread: &'static str) -> bool {
        let Some(lack) = self.failures.retry_of(thread).and_then(|retry| retry.lack) else { return true };
        let now = self.means_of_attempt();
        let is_more =
            lack.available_bytes.is_none_or(|then| now.available_bytes.is_none_or(|now| now > then));
        is_more || now.began.saturating_sub(lack.began) > RETRY_WITHOUT_SPACE
    }

    /// Returns an error if background work failed so often in a row that callers should not wait for it.
    pub fn check_progress(&self) -> Result<()> {
        self.failures.stalled().into_iter().try_for_each(|thread| self.check_progress_of(thread))
    }

    /// Like [`Shared::check_progress`], for the work of one thread.
    pub fn check_progress_of(&self, thread: &'static str) -> Result<()> {
        let retry = self.failures.retry_of(thread).filter(|retry| retry.attempts >= PATIENT_ATTEMPTS);
        match retry {
            // More space is available than the attempt had: try again at once.
            Some(Retry { lack: Some(_), .. }) if self.may_succeed(thread) => {
                self.scheduler.end_pauses();
                Ok(())
            }
            Some(retry) => Err(retry.error()),
            None => Ok(()),
        }
    }

    /// Handles a failure by its class; returns the error for the user.
    pub fn note_failure(&self, error: Error) -> Error {
        if matches!(error, Error::Closed) {
            // The work was given up.
            return error;
        }
        match class_of(&error) {
            FailureClass::Passing => match error {
                error @ Error::Io { .. } if lacks_space(&error) => {
                    Error::DiskFull { reason: error.to_string() }
                }
                error => error,
            },
            FailureClass::Full => self.log.set_full(&error),
            FailureClass::Final => {
                self.log.fail(&error);
                error
            }
        }
    }

    /// The failures since the opening after which the database continued.
    pub fn failure_stats(&self) -> FailureStats {
        FailureStats {
            retries: self.failures.retries.load(Ordering::Relaxed),
            times_full: self.log.times_full(),
            times_resumed: self.failures.times_resumed.load(Ordering::Relaxed),
        }
    }

    /// Appends edits to the manifest, durably, using the reserved space if necessary. A failure fails the database,
    /// unless it is only a lack of space.
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

    /// Accepts writes again if there is space.
    ///
    /// # Errors
    /// [`Error::DiskFull`] if there is none: nothing has changed then.
    pub fn try_to_resume(&self) -> Result<()> {
        if self.is_backlog_full(false) {
            // The log has room when a conversion has succeeded.
            self.check_progress_of(JobThread::Convert.name())?;
        }
        self.sync_removals()?;
        self.reserve.take().map_err(|error| self.note_failure(error))?;
        self.log.end_full();
        // Nothing is lost: what could not be written is still in memory.
        self.log.commit_all().map_err(|error| self.note_failure(error))?;
        self.failures.times_resumed.fetch_add(1, Ordering::Relaxed);
        self.scheduler.end_pauses();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Lack = Lack { available_bytes: None, began: Duration::ZERO };

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
            assert!(failures.stalled().is_empty());
            assert_eq!(failures.begin_retry("convert", &error, None), attempts);
        }
        let found = |failures: &Failures| failures.retry_of("convert").unwrap().error();
        assert_eq!(failures.stalled(), ["convert"]);
        assert!(matches!(found(&failures), Error::Stalled { .. }));
        let error = Error::DiskFull { reason: "no room".to_owned() };
        failures.begin_retry("convert", &error, Some(NOTHING));
        assert!(matches!(found(&failures), Error::DiskFull { .. }));
        failures.end_retry("convert");
        assert!(failures.stalled().is_empty() && failures.worst().is_none());
        assert_eq!(failures.retries.load(Ordering::Relaxed), u64::from(PATIENT_ATTEMPTS) + 1);
    }
}
