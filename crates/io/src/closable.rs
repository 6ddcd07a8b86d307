//! A storage that its owner can close for all its users, and that remembers a failed sync of its names.

use std::any::Any;
use std::fmt;
use std::io::{Error, Result};
use std::sync::{Arc, PoisonError};

use crate::sync::{Mutex, RwLock, RwLockReadGuard};
use crate::{DirectoryLock, File, FileError, OpenMode, Pipeline, ReadRequest, ReadWait, Storage};

/// Another storage until [`ClosableStorage::close`] is called: after that no name is looked up, created, changed or
/// removed.
///
/// So the owner of a directory can hand it over although parts of the program still hold this storage. Open files stay
/// open: a thread that may still write to one must be stopped at the file.
///
/// After a failed sync of the directory all later ones fail: the names that it was to make durable may be lost, and
/// another thread must not mistake its own sync for one that covers them.
#[derive(Debug)]
pub struct ClosableStorage {
    inner: Arc<dyn Storage>,
    /// Held for reading during each operation on a name, so that closing waits for those under way.
    is_closed: RwLock<bool>,
    /// Why a sync of the directory failed. Held during a sync: no sync succeeds between a failure and its note here.
    directory_sync_failure: Mutex<Option<String>>,
}

/// The cause inside an [`std::io::Error`] of a storage that was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageClosed;

impl StorageClosed {
    /// Whether `error` says that a storage was closed.
    pub fn is(error: &Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl fmt::Display for StorageClosed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the directory was closed")
    }
}

impl std::error::Error for StorageClosed {}

impl ClosableStorage {
    /// The files of `inner`.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self { inner, is_closed: RwLock::new(false), directory_sync_failure: Mutex::default() }
    }

    /// Ends all operations on names: waits for those in progress and refuses later ones.
    pub fn close(&self) {
        *self.is_closed.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Keeps the storage open for as long as the guard lives; an error if it was closed.
    fn open_storage(&self) -> Result<RwLockReadGuard<'_, bool>> {
        let guard = self.is_closed.read().unwrap_or_else(PoisonError::into_inner);
        if *guard { Err(Error::other(StorageClosed)) } else { Ok(guard) }
    }
}

impl Storage for ClosableStorage {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let _open = self.open_storage()?;
        self.inner.open(name, mode)
    }

    fn remove(&self, name: &str) -> Result<()> {
        let _open = self.open_storage()?;
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let _open = self.open_storage()?;
        self.inner.rename(from, to)
    }

    fn list(&self) -> Result<Vec<String>> {
        let _open = self.open_storage()?;
        self.inner.list()
    }

    fn sync_directory(&self) -> Result<()> {
        let _open = self.open_storage()?;
        let mut failure = self.directory_sync_failure.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = &*failure {
            return Err(Error::other(format!("an earlier sync of the directory failed: {reason}")));
        }
        self.inner.sync_directory().inspect_err(|error| {
            if FileError::of(error).is_some_and(FileError::is_sync) {
                *failure = Some(error.to_string());
            }
        })
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>> {
        let _open = self.open_storage()?;
        self.inner.lock(name)
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        let _open = self.open_storage()?;
        self.inner.lock_shared(name)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        self.inner.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.inner.pipeline(depth)
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        self.inner.available_bytes()
    }

    fn set_read_wait(&self, wait: ReadWait) {
        self.inner.set_read_wait(wait);
    }

    fn link_from(&self, source: &dyn Storage, name: &str) -> Result<bool> {
        let _open = self.open_storage()?;
        self.inner.link_from(source, name)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        self.inner.as_any()
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultPlan, SimulatedStorage};

    #[test]
    fn after_a_failed_sync_of_the_directory_none_succeeds() {
        let inner = SimulatedStorage::new(1);
        let storage = ClosableStorage::new(Arc::new(inner.clone()));
        storage.open("name", OpenMode::Create).unwrap();
        inner.set_faults(FaultPlan { fail_sync: Some(0), ..FaultPlan::default() });
        assert!(storage.sync_directory().is_err());
        inner.sync_directory().unwrap();
        assert!(storage.sync_directory().unwrap_err().to_string().contains("earlier sync"));
    }

    #[test]
    fn a_closed_storage_changes_no_name_and_open_files_stay() {
        let inner = SimulatedStorage::new(1);
        let storage = ClosableStorage::new(Arc::new(inner.clone()));
        let file = storage.open("kept", OpenMode::Create).unwrap();
        file.write_at(b"bytes", 0).unwrap();
        storage.close();
        let refusals = [
            storage.open("kept", OpenMode::Read).map(drop),
            storage.open("new", OpenMode::Create).map(drop),
            storage.remove("kept"),
            storage.rename("kept", "other"),
            storage.list().map(drop),
            storage.sync_directory(),
            storage.lock("LOCK").map(drop),
        ];
        for refusal in refusals {
            assert!(StorageClosed::is(&refusal.unwrap_err()));
        }
        assert_eq!(inner.list().unwrap(), ["kept"]);
        let mut bytes = [0; 5];
        assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 5);
    }
}
