//! The memory of the directories of chained keyspaces.
//!
//! It is taken from the share of filters and indexes, which are dropped where both do not fit. A directory itself can
//! neither be dropped nor read from the device for a single lookup. But once all directories together have the whole
//! share, none doubles its slots any more, and chains become longer than their plans say: a lookup takes more reads.

use alluvium_io::sync::Mutex;

use super::shared::Shared;
use crate::table::Loan;

/// What directories have of the share of filters and indexes, in bytes.
#[derive(Debug, Default)]
pub(crate) struct DirectoryMemory {
    loan: Mutex<Option<(u64, Loan)>>,
}

impl Shared {
    /// Counts the directories as they are now. They grow when a segment of the log begins.
    pub fn count_directories(&self) {
        // Held while they are counted: the last count is of what is true last.
        let mut loan = self.memory.directories.loan.lock().expect("no panic while held");
        let versions: Vec<_> =
            self.all_keyspaces().iter().map(|keyspace| keyspace.version.load_full()).collect();
        let directories =
            || versions.iter().filter_map(|version| version.chain.as_ref()).map(|chain| &chain.directory);
        let bytes: u64 = directories().map(|directory| directory.memory_bytes()).sum();
        let rest = self.memory.budget().index_bytes.saturating_sub(bytes);
        directories().for_each(|directory| {
            directory.set_bytes_max(directory.memory_bytes().saturating_add(rest));
        });
        let lent = loan.as_ref().map_or(0, |(lent, _)| *lent);
        if lent != bytes || self.memory.budget().limit.is_none() {
            *loan = None;
            *loan = self.memory.lend(bytes).map(|loan| (bytes, loan));
        }
    }
}
