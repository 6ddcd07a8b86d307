//! Whether the database takes writes, why not, and the way back.

use serde::Serialize;

use super::database::Db;
use crate::error::{IoContext, Result};
use crate::level::parse_table_file_name;
use crate::log::Refusal;

/// Whether a database takes writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Health {
    /// It does.
    Healthy,
    /// It was opened for reading only.
    ReadOnly,
    /// A write or a sync failed, in the background or under a user, and since then none is taken. Reads go on.
    Failed {
        /// The first failure.
        reason: String,
        /// Whether only space was missing, so that [`Db::resume`] will do once there is some. Otherwise reopen.
        resumable: bool,
    },
}

impl Db {
    /// Whether the database takes writes. Failures stay until it is reopened or resumed.
    pub fn health(&self) -> Health {
        match self.shared().log.refusal() {
            None => Health::Healthy,
            Some(Refusal::ReadOnly) => Health::ReadOnly,
            Some(Refusal::Failed { reason, is_full }) => {
                let broken = self.shared().manifest.lock().expect("no panic while held").is_broken();
                Health::Failed { reason, resumable: is_full && !broken }
            }
        }
    }

    /// Takes writes again after the disk was full, once there is space: removes what was left half written, makes the
    /// log durable and lets the background work go on. Writes that failed meanwhile may take effect.
    ///
    /// # Errors
    /// [`crate::Error::Failed`] after any other failure: what is on the device is unknown, and only an opening finds
    /// out. [`crate::Error::Io`] when there is still no space; it may be tried again.
    pub fn resume(&self) -> Result<()> {
        let shared = self.shared();
        match self.health() {
            Health::Healthy => return Ok(()),
            Health::ReadOnly | Health::Failed { resumable: false, .. } => return shared.check_failure(),
            Health::Failed { resumable: true, .. } => {}
        }
        {
            let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
            let _no_merge = shared.merge_lock.lock().expect("no panic while held");
            for name in shared.storage.list().context(|| "listing the database directory".to_owned())? {
                // Tables that are obsolete but still read lose their names only.
                if parse_table_file_name(&name).is_some_and(|number| !shared.is_file_named(number)) {
                    shared.storage.remove(&name).context(|| format!("removing {name}"))?;
                }
            }
        }
        shared.log.resume();
        shared.log.commit_all()?;
        shared.scheduler.wake();
        Ok(())
    }
}
