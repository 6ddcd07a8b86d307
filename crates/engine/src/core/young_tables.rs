//! Places tables in the second directory, if there is one.

use alluvium_base::TableId;
use alluvium_io::Storage;
use alluvium_io::sync::Arc;
use alluvium_io::sync::atomic::Ordering;

use super::shared::Shared;
use crate::manifest::Edit;

impl Shared {
    /// Decides where the table `table`, about to be created for this level, will be stored. The edit, if any, must
    /// precede the one that adds the table.
    pub fn place_table(&self, table: TableId, level: usize) -> Option<Edit> {
        let young = self.young.as_ref()?;
        young.place(table, level).then_some(Edit::YoungTable { file: table })
    }

    /// Counts a table that was written, if it is in the second directory.
    pub fn count_if_young(&self, table: TableId, bytes: u64) {
        if self.young.as_ref().is_some_and(|young| young.has(table)) {
            self.counters.young_bytes_written.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The directory in which a file of the database is stored.
    pub fn directory_of(&self, name: &str) -> &Arc<dyn Storage> {
        self.young.as_ref().map_or(&self.storage, |young| young.directories.holder(name))
    }
}
