//! Whether the database accepts writes, why not, and how to recover.

use serde::Serialize;

use super::database::Db;
use crate::core::Retry;
use crate::error::Result;
use crate::log::Refusal;

/// Whether a database accepts writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Health {
    /// Writes are accepted.
    Healthy,
    /// Writes are accepted, but background work fails for a reason that may pass (no descriptor, no memory, no space
    /// for a merge, a failed read). It is tried again automatically after 20 milliseconds to 2 seconds; work that
    /// lacked space, when there is more, or after 30 seconds. If the log becomes full meanwhile, writes return
    /// [`crate::Error::Stalled`], or [`crate::Error::DiskFull`] if space is lacking.
    Retrying {
        /// The latest failure.
        reason: String,
        /// Number of failed attempts in a row.
        attempts: u32,
    },
    /// The disk is full: reads and removals continue, and everything that needs space returns
    /// [`crate::Error::DiskFull`]. Writes are accepted again automatically at most 2 seconds after there is room, or at
    /// once after [`Db::resume`].
    DiskFull {
        /// The write that found no room.
        reason: String,
    },
    /// The database was opened for reading only.
    ReadOnly,
    /// A write or a sync of the log, the manifest or large items failed. The state of the device is unknown, so nothing
    /// is written any more. Reads continue. Fix the cause and reopen the database.
    Failed {
        /// The first failure.
        reason: String,
    },
    /// The database was closed.
    Closed,
}

impl Db {
    /// Whether the database accepts writes.
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

    /// Does at once what the database does by itself after a pause: accepts writes again after the disk was full, if
    /// there is space, and continues background work that failed. Does nothing if nothing is wrong.
    ///
    /// # Errors
    /// [`crate::Error::DiskFull`] if there is still no space; the call may be repeated. [`crate::Error::Failed`] after
    /// a failed write or sync: the state of the device is unknown, and only reopening the database finds it out.
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
