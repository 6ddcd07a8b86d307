//! Closing a database: the order of what happens
//! ([decision 0048](../../../../docs/decisions/0048-errors-by-class.md)).

use alluvium_io::sync::atomic::Ordering;
use alluvium_io::sync::{Arc, Mutex};

use super::shared::Shared;
use crate::compact::convert_oldest;
use crate::error::{Error, Result};
use crate::failure::{FailureClass, class_of};
use crate::manifest::Edit;

/// A log of at most this is left to be replayed when the database is closed.
const REPLAY_BYTES_MAX: u64 = 4 << 20;

/// Keeps the database open. Background threads don't hold it, so the last user's drop closes.
#[derive(Debug)]
pub(crate) struct Handle {
    pub shared: Arc<Shared>,
    /// Whether it was closed. Held meanwhile, so that whoever closes too returns no sooner.
    closed: Mutex<bool>,
}

impl Handle {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, closed: Mutex::new(false) }
    }

    /// Closes the database, in this order:
    ///
    /// 1. Operations to come are refused. Rates and delays end, and work under way is given up at its next piece.
    /// 2. Background threads are joined, and work of users that changes tables is waited for: its locks are taken.
    /// 3. Nothing is appended to the log any more. What is large of it is converted, all of it is synced.
    /// 4. Blob files are sealed, and the manifest says how far the log goes. Where there is no room for that, or no
    ///    descriptor, the next opening finds it out.
    /// 5. Log files, the manifest and all names are closed to what still holds them.
    /// 6. The directory's lock is given back, also when something before failed.
    pub(super) fn close(&self) -> Result<()> {
        let mut closed = self.closed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if std::mem::replace(&mut *closed, true) {
            return Ok(());
        }
        let shared = &self.shared;
        shared.refuse_operations();
        shared.scheduler.stop();
        let outcome = if shared.is_read_only() { Ok(()) } else { shared.settle() };
        shared.let_go();
        outcome
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // `close` reports errors; a drop can't, and what was acknowledged as durable is durable already.
        let _ = self.close();
    }
}

impl Shared {
    /// Refuses what was begun after the database was closed.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// An error as a user is to see it: whatever fails once the database is closed fails because of that, since the
    /// files may be somebody else's.
    #[cold]
    pub fn closed_or(&self, error: Error) -> Error {
        self.check_open().map_or_else(|closed| closed, |()| error)
    }

    fn refuse_operations(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.log.begin_close();
        self.merge_rate.end();
        self.throttle.end();
        self.scheduler.begin_stop();
        self.close_keyspaces();
    }

    fn close_keyspaces(&self) {
        for keyspace in self.all_keyspaces() {
            keyspace.set_closed();
        }
        self.scan_cache.clear();
    }

    /// Makes what was acknowledged durable, and leaves a log that the next opening replays in no time.
    fn settle(&self) -> Result<()> {
        let _no_collection = self.collect_lock.lock().expect("no panic while held");
        let _no_conversion = self.convert_lock.lock().expect("no panic while held");
        let _no_merge = self.merge_lock.lock().expect("no panic while held");
        // Those that were created meanwhile, too.
        self.close_keyspaces();
        self.log.shut();
        if let Some(failure) = self.log.failure() {
            return Err(failure.error());
        }
        self.settle_if_possible(Self::convert_what_is_large)?;
        let _no_freeze = self.freeze_lock.lock().expect("no panic while held");
        self.log.commit_all()?;
        self.settle_if_possible(|shared| {
            // What is finished is trusted by its length: the next opening notices when something of it is missing.
            shared.blobs.end_current(None);
            shared.blobs.seal_ended(shared)?;
            shared.mark_log_end()
        })
    }

    /// Does what makes the next opening quicker or surer, where there is room and a descriptor for it.
    fn settle_if_possible(&self, settle: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        match settle(self) {
            Err(error) if class_of(&error) == FailureClass::Final => Err(self.note_failure(error)),
            _ => Ok(()),
        }
    }

    fn convert_what_is_large(&self) -> Result<()> {
        while convert_oldest(self)? {}
        let active = self.log.active_segment();
        if active.published() > REPLAY_BYTES_MAX.min(active.capacity() / 4) {
            self.freeze_now(active.id)?;
            while convert_oldest(self)? {}
        }
        Ok(())
    }

    /// Says in the manifest how far the log goes, and in `CURRENT` how far the manifest does, so that the next opening
    /// notices when something of them is missing.
    /// Nothing is appended any more.
    fn mark_log_end(&self) -> Result<()> {
        let durable = self.log.durable();
        if durable.segment == self.log.active_segment().id && self.frozen_count() == 0 {
            self.append_edits(&[Edit::LogEnd { segment: durable.segment, offset: durable.offset }])?;
        }
        self.manifest.lock().expect("no panic while held").seal()
    }

    /// Touches no file from here on, whoever still holds what.
    fn let_go(&self) {
        self.log.end_writing();
        self.manifest.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).end();
        self.reclaimer.end();
        self.gate.close();
        drop(self.directory_lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take());
    }
}
