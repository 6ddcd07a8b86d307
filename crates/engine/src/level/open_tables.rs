//! [`OpenTables`]: the table files in use, each opened once, and the directories that were read last.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError, Weak};

use alluvium_base::TableId;
use alluvium_io::sync::Mutex;

use super::table_file::TableFile;
use crate::error::Result;
use crate::table::{IndexMemory, StoredDirectory, TableCharge};

/// Maximum and minimum bound of the bytes of kept directories; the minimum holds however short memory is.
const DIRECTORIES_BYTES_MAX: u64 = 1 << 20;
const DIRECTORIES_BYTES_MIN: u64 = 64 << 10;
/// The bound of filters and indexes divided by this is what directories may take.
const DIRECTORIES_SHARE: u64 = 16;

/// Table files by id. Keyspaces share a file: one made by a freeze has sections of many.
#[derive(Debug, Default)]
pub(super) struct OpenTables {
    files: Mutex<HashMap<TableId, Weak<TableFile>>>,
    directories: Mutex<Directories>,
}

/// Directories, the most recent last: keyspaces that are opened one after the other look into the same files.
#[derive(Debug, Default)]
struct Directories {
    kept: VecDeque<(TableId, Arc<StoredDirectory>, TableCharge)>,
    bytes: u64,
}

impl OpenTables {
    /// The file of this id: the one in use, or else the result of `open`.
    pub fn get_or_open(
        &self,
        id: TableId,
        open: impl FnOnce() -> Result<Arc<TableFile>>,
    ) -> Result<Arc<TableFile>> {
        // Held while the file is opened, so that it is opened once.
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.get(&id).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let file = open()?;
        files.insert(id, Arc::downgrade(&file));
        Ok(file)
    }

    /// Forgets a file that is no longer in use.
    pub fn forget(&self, id: TableId) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been opened again meanwhile.
        if files.get(&id).is_some_and(|file| file.strong_count() == 0) {
            files.remove(&id);
        }
    }

    /// The directory of this file, if it is kept.
    pub fn directory(&self, id: TableId) -> Option<Arc<StoredDirectory>> {
        let directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = directories.kept.iter().find(|(kept, ..)| *kept == id);
        kept.map(|(_, directory, _)| directory.clone())
    }

    /// Like [`OpenTables::directory`], but stops keeping it.
    pub fn take_directory(&self, id: TableId) -> Option<Arc<StoredDirectory>> {
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        let place = directories.kept.iter().position(|(kept, ..)| *kept == id)?;
        let (_, directory, _) = directories.kept.remove(place)?;
        directories.bytes -= directory.memory_bytes();
        Some(directory)
    }

    /// Keeps a directory. The oldest ones are dropped if there are too many.
    pub fn keep_directory(&self, id: TableId, directory: Arc<StoredDirectory>, memory: &Arc<IndexMemory>) {
        let bytes_max = memory.bytes_max() / DIRECTORIES_SHARE;
        let bytes_max = bytes_max.clamp(DIRECTORIES_BYTES_MIN, DIRECTORIES_BYTES_MAX);
        let bytes = directory.memory_bytes();
        let mut directories = self.directories.lock().unwrap_or_else(PoisonError::into_inner);
        while directories.bytes + bytes > bytes_max
            && let Some((_, oldest, _)) = directories.kept.pop_front()
        {
            directories.bytes -= oldest.memory_bytes();
        }
        if bytes <= bytes_max {
            directories.bytes += bytes;
            directories.kept.push_back((id, directory, memory.charge_table(bytes)));
        }
    }

    /// Drops all directories: no more keyspaces are about to be opened.
    pub fn drop_directories(&self) {
        *self.directories.lock().unwrap_or_else(PoisonError::into_inner) = Directories::default();
    }
}
