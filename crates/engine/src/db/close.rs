//! Closes a database, in a fixed order of steps ([decision 0048](../../../../docs/decisions/0048-errors-by-class.md)).

use std::panic::{AssertUnwindSafe, catch_unwind};

use alluvium_io::sync::atomic::Ordering;
use alluvium_io::sync::{Arc, Mutex, thread};

use crate::compact::convert_oldest;
use crate::core::Shared;
use crate::error::{Error, Result};
use crate::failure::{FailureClass, class_of};
use crate::manifest::Edit;

/// Maximum bytes of log that are left to be replayed when the database is closed.
const REPLAY_BYTES_MAX: u64 = 4 << 20;

/// Keeps the database open. Background threads do not hold it, so dropping the last user's handle closes the database.
#[derive(Debug)]
pub(crate) struct Handle {
    pub shared: Arc<Shared>,
    /// Whether it was closed. Locked while closing, so that a second call does not return earlier.
    closed: Mutex<bool>,
}

impl Handle {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, closed: Mutex::new(false) }
    }

    /// Closes the database, in this order:
    ///
    /// 1. Later operations are refused. Rates and delays end, and work in progress is given up at its next piece.
    /// 2. Background threads are joined, and work of users that changes tables is awaited by taking its locks.
    /// 3. Nothing is appended to the log any more. A large log is converted, and all of it is synced.
    /// 4. Directories of chains are saved. Blob files are sealed, and the manifest says how far the log goes. If there
    ///    is no room or no descriptor for that, the next opening finds it out.
    /// 5. Log files, the manifest and all names are closed to everything that still refers to them.
    /// 6. The directory's lock is released, even if a step before failed.
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
        // `close` reports errors; a drop cannot. What was acknowledged as durable is durable already.
        let _ = match thread::panicking() {
            false => self.close(),
            // The thread that panics may have held locks. Another panic must not end the process.
            true => catch_unwind(AssertUnwindSafe(|| self.close())).unwrap_or(Ok(())),
        };
    }
}

impl Shared {
    /// Refuses operations that begin after the database was closed.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// The error that a user gets. Once the database is closed, every failure is reported as [`Error::Closed`], since
    /// the files may belong to another opening.
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
        self.reclaimer.begin_stop();
        self.close_keyspaces();
    }

    fn close_keyspaces(&self) {
        for keyspace in self.all_keyspaces() {
            keyspace.set_closed();
        }
        self.scan_cache.clear();
    }

    /// Makes acknowledged writes durable, and leaves a log that the next opening replays quickly.
    fn settle(&self) -> Result<()> {
        let _no_collection = self.collect_lock.lock().expect("no panic while held");
        let _no_conversion = self.convert_lock.lock().expect("no panic while held");
        let _no_merge = self.merge_lock.lock().expect("no panic while held");
        // Includes keyspaces created meanwhile.
        self.close_keyspaces();
        self.log.shut();
        if let Some(failure) = self.log.failure() {
            return Err(failure.error());
        }
        self.settle_if_possible(Self::convert_what_is_large)?;
        let _no_freeze = self.freeze_lock.lock().expect("no panic while held");
        self.log.commit_all()?;
        self.settle_if_possible(Self::save_all_directories)?;
        self.settle_if_possible(|shared| {
            // Finished files are trusted by their length: the next opening notices if a part is missing.
            shared.blobs.end_current(None);
            shared.blobs.seal_ended(shared)?;
            shared.mark_log_end()
        })
    }

    /// Does what makes the next opening faster or safer, if there is room and a descriptor for it.
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

    /// Writes to the manifest how far the log goes, and to `CURRENT` how long the manifest is, so that the next opening
    /// notices if a part of them is missing. Nothing may be appended any more.
    fn mark_log_end(&self) -> Result<()> {
        let durable = self.log.durable();
        if durable.segment == self.log.active_segment().id && self.frozen_count() == 0 {
            self.append_edits(&[Edit::LogEnd { segment: durable.segment, offset: durable.offset }])?;
        }
        self.manifest.lock().expect("no panic while held").seal()
    }

    /// Touches no file from here on, no matter what is still referred to.
    fn let_go(&self) {
        self.log.end_writing();
        self.manifest.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).end();
        self.reclaimer.end();
        self.gate.close();
        drop(self.directory_lock.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take());
    }
}
