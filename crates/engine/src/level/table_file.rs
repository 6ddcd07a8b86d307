//! A table file. It is removed from the storage when it is obsolete and nothing refers to it any more.

use std::sync::Arc;

use alluvium_base::{KeyspaceId, TableId};
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::{OpenMode, Storage};

use super::reclaimer::{Job, Reclaimer};
use crate::error::{Error, Result};
use crate::file_names::table_file_name;
use crate::table::{Section, SectionEntry, StoredDirectory, Table};

/// An open table file, shared by the versions of all keyspaces. An obsolete one is removed when the last version drops
/// it.
#[derive(Debug)]
pub(crate) struct TableFile {
    pub id: TableId,
    /// Without its sections: each version holds those that it needs.
    pub table: Table,
    reclaimer: Arc<Reclaimer>,
    obsolete: AtomicBool,
}

impl TableFile {
    /// The file of this id, opened once for all its users. Opening reads its directory, not its items.
    pub fn open(reclaimer: &Arc<Reclaimer>, id: TableId) -> Result<Arc<Self>> {
        let name = table_file_name(id);
        reclaimer.open_tables().get_or_open(id, || {
            let memory = reclaimer.index_memory();
            let (table, directory) =
                Table::open_within(&**reclaimer.storage(), &name, memory).map_err(|error| match error {
                    crate::table::Error::Io { source, .. }
                        if source.kind() == std::io::ErrorKind::NotFound =>
                    {
                        Error::MissingFile { file: name.clone() }
                    }
                    other => other.into(),
                })?;
            reclaimer.open_tables().keep_directory(id, Arc::new(directory), memory);
            let reclaimer = reclaimer.clone();
            Ok(Arc::new(Self { id, table, reclaimer, obsolete: AtomicBool::new(false) }))
        })
    }

    /// The directory: kept since it was read last, or read again.
    fn directory(&self) -> Result<Arc<StoredDirectory>> {
        if let Some(directory) = self.reclaimer.open_tables().directory(self.id) {
            return Ok(directory);
        }
        let directory = Arc::new(self.table.read_directory()?);
        let (tables, memory) = (self.reclaimer.open_tables(), self.reclaimer.index_memory());
        tables.keep_directory(self.id, directory.clone(), memory);
        Ok(directory)
    }

    /// Creates the sections of one keyspace, in the order in which they were written. Must be called once for each
    /// keyspace that uses the file.
    pub fn sections_of(&self, keyspace: KeyspaceId) -> Result<Vec<Arc<Section>>> {
        let entries = self.table.within_directory(self.directory()?.entries_of(keyspace))?;
        self.sections(entries)
    }

    /// Creates all sections of a file just written.
    pub fn all_sections(&self) -> Result<Vec<Arc<Section>>> {
        let directory = match self.reclaimer.open_tables().take_directory(self.id) {
            Some(directory) => directory,
            None => Arc::new(self.table.read_directory()?),
        };
        let entries = self.table.within_directory(directory.entries())?;
        self.sections(entries)
    }

    fn sections(&self, entries: Vec<SectionEntry>) -> Result<Vec<Arc<Section>>> {
        let functions = self.reclaimer.prefix_functions();
        Ok(entries
            .into_iter()
            .map(|entry| self.table.section(entry, functions))
            .collect::<std::result::Result<_, _>>()?)
    }

    /// Loads the filters and indexes of these sections, so that no lookup must do it. For files just written.
    pub fn load_indexes(&self, sections: &[Arc<Section>]) -> Result<()> {
        Ok(self.table.load_indexes(sections)?)
    }

    /// The storage that contains the file.
    pub fn storage(&self) -> &dyn Storage {
        &**self.reclaimer.storage()
    }

    /// Gives the space of a section that nobody reads any more back to the file system, now or later.
    pub fn reclaim(self: &Arc<Self>, offset: u64, len: u64) {
        self.reclaimer.submit(Job::Punch { file: Arc::clone(self), offset, len });
    }

    /// Does what [`TableFile::reclaim`] requested. Only the reclaimer calls it, so one thread at a time.
    pub(super) fn punch_hole(&self, offset: u64, len: u64) -> std::io::Result<()> {
        if self.obsolete.load(Ordering::Acquire) {
            // The file itself is about to be removed.
            return Ok(());
        }
        // Opened only for the hole: a file that is open for writing keeps its descriptors.
        let file = self.storage().open(&table_file_name(self.id), OpenMode::Write)?;
        if file.link_count()? > 1 {
            // A checkpoint may still need what this database no longer needs.
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
        self.reclaimer.open_tables().forget(self.id);
        if self.obsolete.load(Ordering::Acquire) {
            self.reclaimer.submit(Job::Remove { name: table_file_name(self.id) });
        }
    }
}
