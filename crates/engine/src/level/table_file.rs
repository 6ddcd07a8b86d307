//! A table file and its end: when nothing refers to it any more, it is removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium_io::{OpenMode, Storage};

use crate::error::{Error, Result};
use crate::table::Table;

/// An open table file. Versions share it; an obsolete one is removed when the last of them lets go.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub number: u64,
    pub table: Table,
    storage: Arc<dyn Storage>,
    obsolete: AtomicBool,
}

impl TableFile {
    /// Opens the file of this number: reads its directory, not its items.
    pub fn open(storage: &Arc<dyn Storage>, number: u64) -> Result<Arc<Self>> {
        let name = file_name(number);
        let table = Table::open(&**storage, &name).map_err(|error| match error {
            crate::table::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Error::MissingFile { file: name.clone() }
            }
            other => other.into(),
        })?;
        Ok(Arc::new(Self { number, table, storage: storage.clone(), obsolete: AtomicBool::new(false) }))
    }

    /// Loads the filters and indexes of all sections, so that no lookup has to. For files just written.
    pub fn load_indexes(&self) -> Result<()> {
        for section in self.table.sections() {
            section.index()?;
        }
        Ok(())
    }

    /// The storage that the file lies in.
    pub fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    /// Gives the space of sections that nobody reads any more back to the file system.
    pub fn punch_hole(&self, offset: u64, len: u64) -> std::io::Result<()> {
        if self.obsolete.load(Ordering::Acquire) {
            return Ok(());
        }
        // The table itself is open for reading only.
        self.storage.open(&file_name(self.number), OpenMode::Write)?.punch_hole(offset, len)
    }

    /// Declares that the manifest no longer names the file.
    pub fn set_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            // A file that can't be removed now is removed when the database is opened next.
            let _ = self.storage.remove(&file_name(self.number));
        }
    }
}

/// The name of table file `number`.
pub(crate) fn file_name(number: u64) -> String {
    format!("table-{number:08}")
}

/// The number in a table file's name; `None` for other names.
pub(crate) fn parse_file_name(name: &str) -> Option<u64> {
    name.strip_prefix("table-")?.parse().ok()
}
