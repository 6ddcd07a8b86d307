//! Whether the database takes writes, why not, and the way back.

use serde::Serialize;

use super::database::Db;
use super::failures::Retry;
use crate::error::Result;
use crate::log::Refusal;

/// Whether a database takes writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Health {
    /// It does.
    Healthy,
    /// It does, and background work fails for a reason that may pass (no descriptor, no memory, no space for a merge, a
    /// read that failed). It is tried again automatically, after 20 milliseconds to 2 seconds; what lacked space, when
    /// there is more of it, or after 30 seconds. When the log is full meanwhile, writes give
    /// [`crate::Error::Stalled`], or [`crate::Error::DiskFull`] if space is lacking.
    Retrying {
        /// The latest failure.
        reason: String,
        /// Attempts that failed in a row.
        attempts: u32,
    },
    /// The disk is full: reads and removals go on, and whatever needs space gives [`crate::Error::DiskFull`]. Writes
    /// are taken again by themselves at most 2 seconds after there is room, and at once by [`Db::resume`].
    DiskFull {
        /// What had no room.
        reason: String,
    },
    /// It was opened for reading only.
    ReadOnly,
    /// A write or a sync of the log, the manifest or large items failed, and since then nothing is written: what is on
    /// the device is unknown. Reads go on. Fix the cause and reopen.
    Failed {
        /// The first failure.
        reason: String,
    },
    /// It was closed.
    Closed,
}

impl Db {
    /// Whether the database takes writes.
    pub fn health(&self) -> Health {
        match self.shared().log.refusal() {
            None => match self.shared().failures.worst() {
                None => Health::Healthy,
                Some(Retry { reason, attempts, .. }) => Health::Retrying { reason, attempts },
            },
            Some(Refusal::ReadOnly) => Health::ReadOnly,
            Some(Refusal::Closed) => Health::Closed,
            Some(Refusal::Full { reason }) => Health::DiskFull { reason },
            Some(Refusal::Failed { reason }) => Health::Failed { reason },
        }
    }

    /// Tries at once what the database tries by itself after a pause: takes writes again after the disk was full, if
    /// there is space, and goes on with background work that failed. Does nothing where nothing is wrong.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`] when there is still no space; it may be tried again. [`crate::Error::Failed`] after a
    /// failed write or sync: what is on the device is unknown, and only an opening finds out.
    pub fn resume(&self) -> Result<()> {
        let shared = self.shared();
        shared.scheduler.end_pauses();
        match shared.log.refusal() {
            None => Ok(()),
            Some(Refusal::Full { .. }) => shared.try_to_resume(),
            Some(refusal) => Err(refusal.error()),
        }
    }
}
