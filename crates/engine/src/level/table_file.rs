//! A table file and its end: when nothing refers to it any more, it is removed.

use std::sync::Arc;

use alluvium_io::sync::OnceLock;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::{File, OpenMode, Storage};

use super::reclaimer::{Job, Reclaimer};
use crate::error::{Error, Result};
use crate::table::Table;

/// An open table file. Versions share it; an obsolete one is removed when the last of them lets go.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub number: u64,
    pub table: Table,
    reclaimer: Arc<Reclaimer>,
    /// For punching holes: the table itself is open for reading only.
    writable: OnceLock<Arc<dyn File>>,
    obsolete: AtomicBool,
}

impl TableFile {
    /// Opens the file of this number: reads its directory, not its items.
    pub fn open(reclaimer: &Arc<Reclaimer>, number: u64) -> Result<Arc<Self>> {
        let name = file_name(number);
        let table = Table::open_within(
            &**reclaimer.storage(),
            &name,
            reclaimer.index_memory(),
            reclaimer.prefix_functions(),
        )
        .map_err(|error| match error {
            crate::table::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                Error::MissingFile { file: name.clone() }
            }
            other => other.into(),
        })?;
        Ok(Arc::new(Self {
            number,
            table,
            reclaimer: reclaimer.clone(),
            writable: OnceLock::new(),
            obsolete: AtomicBool::new(false),
        }))
    }

    /// Loads the filters and indexes of all sections, so that no lookup has to. For files just written.
    pub fn load_indexes(&self) -> Result<()> {
        Ok(self.table.load_indexes()?)
    }

    /// The storage that the file lies in.
    pub fn storage(&self) -> &dyn Storage {
        &**self.reclaimer.storage()
    }

    /// Gives the space of a section that nobody reads any more back to the file system, sooner or later.
    pub fn reclaim(self: &Arc<Self>, offset: u64, len: u64) {
        self.reclaimer.submit(Job::Punch { file: Arc::clone(self), offset, len });
    }

    /// Does what [`TableFile::reclaim`] asked for. The reclaimer alone calls it, so one thread at a time.
    pub(super) fn punch_hole(&self, offset: u64, len: u64) -> std::io::Result<()> {
        if self.obsolete.load(Ordering::Acquire) {
            // The file itself is about to go.
            return Ok(());
        }
        let file = match self.writable.get() {
            Some(file) => file,
            None => {
                let file = self.storage().open(&file_name(self.number), OpenMode::Write)?;
                self.writable.get_or_init(|| file)
            }
        };
        if file.link_count()? > 1 {
            // A checkpoint may still need what this database does not.
            return Ok(());
        }
        file.punch_hole(offset, len)
    }

    /// Declares that the manifest no longer names the file.
    pub fn set_obsolete(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if self.obsolete.load(Ordering::Acquire) {
            self.reclaimer.submit(Job::Remove { name: file_name(self.number) });
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
