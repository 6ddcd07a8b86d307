//! A storage over another one, which it never changes: everything written stays in memory.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, PoisonError};

use crate::error::{FileError, check_name};
use crate::sync::{Mutex, MutexGuard};
use crate::{DirectoryLock, File, OpenMode, Pipeline, ReadRequest, ReadWait, Storage};

/// The files of another storage, with changes that are visible only here and end with this value.
///
/// New files are held in memory, removals are remembered, and existing files are opened for reading whatever mode is
/// requested. So code that begins by recording its state runs on a directory that must not change. The lock is one that
/// readers share and writers respect; a directory that no writer ever locked is read without a lock.
#[derive(Debug)]
pub struct ReadOnlyStorage {
    inner: Arc<dyn Storage>,
    changes: Mutex<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    created: BTreeMap<String, Arc<MemoryFile>>,
    removed: BTreeSet<String>,
}

impl ReadOnlyStorage {
    /// The files of `inner`.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self { inner, changes: Mutex::default() }
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(operation: &'static str, name: &str, kind: ErrorKind) -> Error {
        FileError::wrap(operation, name, None, kind.into())
    }
}

impl Storage for ReadOnlyStorage {
    fn set_read_wait(&self, wait: ReadWait) {
        self.inner.set_read_wait(wait);
    }

    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let mut changes = self.changes();
        if mode == OpenMode::Create {
            let is_below =
                !changes.removed.contains(name) && self.inner.list()?.iter().any(|below| below == name);
            if is_below || changes.created.contains_key(name) {
                return Err(Self::error("create", name, ErrorKind::AlreadyExists));
            }
            let file = Arc::new(MemoryFile { name: name.to_owned(), bytes: Mutex::default() });
            changes.created.insert(name.to_owned(), Arc::clone(&file));
            return Ok(file);
        }
        if let Some(file) = changes.created.get(name) {
            return Ok(Arc::clone(file) as Arc<dyn File>);
        }
        if changes.removed.contains(name) {
            return Err(Self::error("open", name, ErrorKind::NotFound));
        }
        self.inner.open(name, OpenMode::Read)
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let mut changes = self.changes();
        if changes.created.remove(name).is_none() {
            changes.removed.insert(name.to_owned());
        }
        Ok(())
    }

    /// Only files that were created here can be renamed.
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let mut changes = self.changes();
        match changes.created.remove(from) {
            Some(file) => {
                changes.created.insert(to.to_owned(), file);
                changes.removed.insert(to.to_owned());
                Ok(())
            }
            None => Err(Self::error("rename", from, ErrorKind::ReadOnlyFilesystem)),
        }
    }

    fn list(&self) -> Result<Vec<String>> {
        let changes = self.changes();
        let mut names: BTreeSet<String> = self.inner.list()?.into_iter().collect();
        names.retain(|name| !changes.removed.contains(name));
        names.extend(changes.created.keys().cloned());
        Ok(names.into_iter().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>> {
        match self.inner.lock_shared(name)? {
            Some(lock) => Ok(lock),
            None => Ok(Box::new(NoLock)),
        }
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        self.inner.lock_shared(name)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        self.inner.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.inner.pipeline(depth)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.inner.as_any()
    }

    fn describe(&self) -> String {
        format!("{}, read only", self.inner.describe())
    }
}

/// Stands in for the lock of a directory that no writer ever locked.
#[derive(Debug)]
struct NoLock;

impl DirectoryLock for NoLock {}

/// A file that exists in memory only.
#[derive(Debug)]
struct MemoryFile {
    name: String,
    bytes: Mutex<Vec<u8>>,
}

impl MemoryFile {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.bytes();
        let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, new: &[u8], offset: u64) -> Result<()> {
        let end = usize::try_from(offset).ok().and_then(|offset| offset.checked_add(new.len()));
        let end = end.ok_or(ErrorKind::InvalidInput)?;
        let mut bytes = self.bytes();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[end - new.len()..end].copy_from_slice(new);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let len = usize::try_from(len).map_err(|_| ErrorKind::InvalidInput)?;
        self.bytes().resize(len, 0);
        Ok(())
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        let mut bytes = self.bytes();
        let end = bytes.len();
        let start = usize::try_from(offset).map_or(end, |start| start.min(end));
        let stop = usize::try_from(offset.saturating_add(len)).map_or(end, |stop| stop.min(end));
        bytes[start..stop].fill(0);
        Ok(())
    }

    fn allocated_bytes(&self) -> Result<u64> {
        Ok(0)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedStorage;

    fn write(storage: &dyn Storage, name: &str, bytes: &[u8]) {
        storage.open(name, OpenMode::Create).unwrap().write_at(bytes, 0).unwrap();
    }

    fn read(storage: &dyn Storage, name: &str) -> Vec<u8> {
        let mut buffer = [0; 16];
        let read = storage.open(name, OpenMode::Read).unwrap().read_at(&mut buffer, 0).unwrap();
        buffer[..read].to_vec()
    }

    #[test]
    fn changes_are_seen_here_and_nowhere_else() {
        let below = SimulatedStorage::new(1);
        write(&below, "kept", b"kept");
        write(&below, "gone", b"gone");
        write(&below, "replaced", b"old");
        let before = (below.contents(), below.operation_count());
        let above = ReadOnlyStorage::new(Arc::new(below.clone()));
        assert_eq!(above.open("kept", OpenMode::Create).unwrap_err().kind(), ErrorKind::AlreadyExists);
        write(&above, "new", b"new");
        write(&above, "next", b"young");
        above.rename("next", "replaced").unwrap();
        above.remove("gone").unwrap();
        above.sync_directory().unwrap();
        assert_eq!(above.list().unwrap(), ["kept", "new", "replaced"]);
        assert_eq!(
            [read(&above, "kept"), read(&above, "new"), read(&above, "replaced")],
            [b"kept".to_vec(), b"new".to_vec(), b"young".to_vec()]
        );
        assert_eq!(above.open("gone", OpenMode::Read).unwrap_err().kind(), ErrorKind::NotFound);
        write(&above, "gone", b"back");
        assert_eq!(read(&above, "gone"), b"back");
        assert!(above.open("kept", OpenMode::Write).unwrap().write_at(b"x", 0).is_err());
        assert!(above.rename("kept", "other").is_err());
        assert_eq!((below.contents(), below.operation_count()), before);
    }

    #[test]
    fn readers_share_what_a_writer_has_alone() {
        let below = SimulatedStorage::new(1);
        let reader = || ReadOnlyStorage::new(Arc::new(below.clone()));
        drop(reader().lock("LOCK").unwrap());
        let writing = below.lock("LOCK").unwrap();
        assert_eq!(reader().lock("LOCK").unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(writing);
        let reading = [reader().lock("LOCK").unwrap(), reader().lock("LOCK").unwrap()];
        assert_eq!(below.lock("LOCK").unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(reading);
        drop(below.lock("LOCK").unwrap());
    }
}
