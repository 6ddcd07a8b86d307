//! [`Version`]: what readers of a keyspace see.

use std::sync::Arc;

use super::levels::Levels;
use crate::blob::VersionBlobs;
use crate::log::LogStore;

/// Everything a reader of one keyspace needs; immutable except for the youngest log store. A lookup visits the parts in
/// order and stops at the first item, which is the newest.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// Young to old; the first is the active one.
    pub log_stores: Vec<Arc<LogStore>>,
    /// What is below the log.
    pub body: Levels,
    /// Large items, stored in blob files.
    pub blobs: Arc<VersionBlobs>,
    /// Grows when items change without a write to the log: a witness of another epoch proves nothing. Not stored.
    pub epoch: u64,
}

impl Version {
    pub fn active(&self) -> &Arc<LogStore> {
        &self.log_stores[0]
    }

    /// Items in the log and below, including tombstones and obsolete versions.
    pub fn items(&self) -> u64 {
        let logged: u64 = self.log_stores.iter().map(|store| store.len() as u64).sum();
        logged + self.body.items()
    }
}
