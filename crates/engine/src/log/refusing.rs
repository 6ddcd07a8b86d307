//! When the log refuses all records, or all but removals: failures, a full disk, closing.

use alluvium_io::sync::atomic::Ordering;

use super::refusal::Refusal;
use super::writer::Log;
use crate::error::Error;

impl Log {
    /// Makes the log acknowledge nothing from now on.
    pub fn fail(&self, error: &Error) {
        self.refuse(Refusal::Failed { reason: error.to_string() });
    }

    pub(super) fn refuse(&self, refusal: Refusal) {
        // Takes the lock, so that `end_full` at the same time does not hide the refusal.
        let _full = self.full.lock().expect("no panic while held");
        self.commit.refuse(refusal);
        self.has_refusal.store(true, Ordering::Release);
    }

    /// Makes the log refuse all writes because the database is open for reading only.
    pub fn refuse_writes(&self) {
        self.refuse(Refusal::ReadOnly);
    }

    /// Refuses what needs space from now on, because a write found no room; returns the error for the writer.
    pub fn set_full(&self, error: &Error) -> Error {
        let reason = match error {
            Error::DiskFull { reason } => reason.clone(),
            error => error.to_string(),
        };
        let mut full = self.full.lock().expect("no panic while held");
        full.get_or_insert_with(|| {
            self.times_full.fetch_add(1, Ordering::Relaxed);
            reason.clone()
        });
        self.has_refusal.store(true, Ordering::Release);
        Error::DiskFull { reason }
    }

    /// How often the disk was found full.
    pub fn times_full(&self) -> u64 {
        self.times_full.load(Ordering::Relaxed)
    }

    /// Accepts all writes again: there is space.
    pub fn end_full(&self) {
        let mut full = self.full.lock().expect("no panic while held");
        *full = None;
        let is_closing = self.is_closing.load(Ordering::Acquire);
        self.has_refusal.store(is_closing || self.commit.refusal().is_some(), Ordering::Release);
    }

    /// Why all writes, or all but removals, are refused; `None` if they are not. The first failure counts.
    #[inline]
    pub fn refusal(&self) -> Option<Refusal> {
        if !self.has_refusal.load(Ordering::Acquire) {
            return None;
        }
        if self.is_closing.load(Ordering::Acquire) {
            return Some(Refusal::Closed);
        }
        let full = || self.full.lock().expect("no panic while held").clone();
        self.commit.refusal().or_else(|| full().map(|reason| Refusal::Full { reason }))
    }

    /// Makes every later append find the log full.
    pub fn shut(&self) {
        self.active().is_shut = true;
    }

    /// Refuses all later operations, while what was appended can still be made durable.
    pub fn begin_close(&self) {
        // Takes the lock for the same reason as `refuse`.
        let _full = self.full.lock().expect("no panic while held");
        self.is_closing.store(true, Ordering::Release);
        self.has_refusal.store(true, Ordering::Release);
    }

    /// Why nothing can be made durable; `None` if it can.
    pub fn failure(&self) -> Option<Refusal> {
        self.commit.refusal()
    }

    /// Ends all writing to log files, and waits for writes under way: from then on the files may belong to another
    /// opening.
    pub fn end_writing(&self) {
        self.refuse(Refusal::Closed);
        self.commit.wait_for_leader();
        let standby = self.standby.lock().expect("no panic while held");
        let sealed = self.sealed().clone();
        let active = self.active_segment();
        let standby = standby.iter().map(|standby| &standby.segment);
        sealed.iter().chain([&active]).chain(standby).for_each(|segment| segment.end_writing());
    }
}
