//! [`UnsyncedTable`]: a table file between its last write and its sync.

use std::sync::Arc;

use alluvium_base::TableId;
use alluvium_io::File;

use crate::error::{Error, Result};

/// Description of a finished table file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Number of the file in its database.
    pub file_number: TableId,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Number of sections.
    pub section_count: usize,
    /// Items of all sections, tombstones included.
    pub item_count: u64,
}

/// A completely written table file that does not yet survive a power cut.
#[derive(Debug)]
pub struct UnsyncedTable {
    pub(super) file: Arc<dyn File>,
    pub(super) info: TableInfo,
}

impl UnsyncedTable {
    /// Items of all sections.
    pub fn item_count(&self) -> u64 {
        self.info.item_count
    }

    /// Makes the content survive a power cut. The caller syncs the directory of files.
    pub fn sync(self) -> Result<TableInfo> {
        self.file.sync().map_err(Error::io("sync", self.file.name()))?;
        Ok(self.info)
    }
}
