//! When the log takes no records, or only removals: failures, a full disk, the end.

use alluvium_io::sync::atomic::Ordering;

use super::refusal::Refusal;
use super::writer::Log;
use crate::error::Error;

impl Log {
    /// Makes the log refuse to acknowledge anything from now on.
    pub fn fail(&self, error: &Error) {
        self.refuse(Refusal::Failed { reason: error.to_string() });
    }

    fn refuse(&self, refusal: Refusal) {
        // The lock, so that an end of fullness at the same time does not hide the refusal.
        let _full = self.full.lock().expect("no panic while held");
        self.commit.refuse(refusal);
        self.has_refusal.store(true, Ordering::Release);
    }

    /// Makes the log refuse all writes because the database is open for reading only.
    pub fn refuse_writes(&self) {
        self.refuse(Refusal::ReadOnly);
    }

    /// Refuses what needs space from now on, since something had no room; returns what a writer is told.
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

    /// Times that the disk was found full.
    pub fn times_full(&self) -> u64 {
        self.times_full.load(Ordering::Relaxed)
    }

    /// Takes all writes again: there is space.
    pub fn end_full(&self) {
        let mut full = self.full.lock().expect("no panic while held");
        *full = None;
        let is_closing = self.is_closing.load(Ordering::Acquire);
        self.has_refusal.store(is_closing || self.commit.refusal().is_some(), Ordering::Release);
    }

    /// Why no writes are taken, or only removals, if that is so: the first failure counts.
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

    /// Appends nothing any more: who tries finds the log full.
    pub fn shut(&self) {
        self.active().is_shut = true;
    }

    /// Refuses all operations to come, while what was appended can still be made durable.
    pub fn begin_close(&self) {
        // The lock, as in `refuse`.
        let _full = self.full.lock().expect("no panic while held");
        self.is_closing.store(true, Ordering::Release);
        self.has_refusal.store(true, Ordering::Release);
    }

    /// Why nothing can be made durable, if that is so.
    pub fn failure(&self) -> Option<Refusal> {
        self.commit.refusal()
    }

    /// Ends all writing to log files, and waits for what is under way: they are somebody else's from then on.
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
