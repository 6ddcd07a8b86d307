//! Two directories as one storage: each file is in one of them, and its name tells which only while it is created.

use std::collections::BTreeSet;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, PoisonError};

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};
use crate::{DirectoryLock, File, OpenMode, Pipeline, ReadRequest, ReadWait, Storage};

/// The files of two directories, which may be on different devices, under one set of names.
///
/// New files go to the first directory, unless [`TwoDirectories::place_in_second`] was called for their names. A name
/// that is in both directories means the file of the second. Batches and pipelines are the first directory's, so both
/// directories must be of one kind. The lock covers both.
#[derive(Debug)]
pub struct TwoDirectories {
    first: Arc<dyn Storage>,
    second: Arc<dyn Storage>,
    /// Names of the files that are in the second directory, or are to be created there.
    in_second: RwLock<BTreeSet<String>>,
    /// Number of changes of names in the second directory so far.
    changes: AtomicU64,
    /// Number of those changes that survive a power cut. Held during a sync: a thread that finds nothing to sync must
    /// know that it has ended.
    synced: Mutex<u64>,
}

impl TwoDirectories {
    /// Both directories as they are now. Nothing else may create files in the second one afterwards.
    ///
    /// # Errors
    /// When the second one can't be listed.
    pub fn new(first: Arc<dyn Storage>, second: Arc<dyn Storage>) -> Result<Self> {
        let in_second = RwLock::new(second.list()?.into_iter().collect());
        Ok(Self { first, second, in_second, changes: AtomicU64::new(0), synced: Mutex::new(0) })
    }

    /// The directory to which files go by default.
    pub fn first(&self) -> &Arc<dyn Storage> {
        &self.first
    }

    /// The directory of files that were placed there.
    pub fn second(&self) -> &Arc<dyn Storage> {
        &self.second
    }

    /// Places the file `name`, which is in neither directory, in the second one when it is created.
    pub fn place_in_second(&self, name: &str) {
        self.in_second.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    /// Whether the file `name` is in the second directory.
    pub fn is_in_second(&self, name: &str) -> bool {
        self.in_second.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// The directory of the file `name`.
    pub fn holder(&self, name: &str) -> &Arc<dyn Storage> {
        if self.is_in_second(name) { &self.second } else { &self.first }
    }

    /// Notes a change of names in the second directory that has happened: a sync that begins later covers it.
    fn note_change(&self, from: &str, to: Option<&str>) {
        let mut in_second = self.in_second.write().unwrap_or_else(PoisonError::into_inner);
        in_second.remove(from);
        in_second.extend(to.map(str::to_owned));
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl Storage for TwoDirectories {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.holder(name).open(name, mode)?;
        if mode == OpenMode::Create && self.is_in_second(name) {
            self.note_change(name, Some(name));
        }
        Ok(file)
    }

    /// A name that is in both directories is removed from both.
    fn remove(&self, name: &str) -> Result<()> {
        if !self.is_in_second(name) {
            return self.first.remove(name);
        }
        let removed = self.second.remove(name);
        if removed.as_ref().map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true) {
            self.note_change(name, None);
        }
        removed?;
        match self.first.remove(name) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The file stays in its directory.
    fn rename(&self, from: &str, to: &str) -> Result<()> {
        if !self.is_in_second(from) {
            if self.is_in_second(to) {
                let message = format!("{to} lies in the second directory, {from} in the first");
                return Err(Error::new(ErrorKind::CrossesDevices, message));
            }
            return self.first.rename(from, to);
        }
        self.second.rename(from, to)?;
        self.note_change(from, Some(to));
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.first.list()?.into_iter().collect();
        names.extend(self.second.list()?);
        Ok(names.into_iter().collect())
    }

    /// The second directory first: what the first one stores afterwards may name its files.
    fn sync_directory(&self) -> Result<()> {
        {
            let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
            let changes = self.changes.load(Ordering::Acquire);
            if *synced != changes {
                self.second.sync_directory()?;
                *synced = changes;
            }
        }
        self.first.sync_directory()
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>> {
        let first = self.first.lock(name)?;
        let second = self.second.lock(name)?;
        Ok(Box::new(BothLocks { _first: Some(first), _second: Some(second) }))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        let (first, second) = (self.first.lock_shared(name)?, self.second.lock_shared(name)?);
        if first.is_none() && second.is_none() {
            return Ok(None);
        }
        Ok(Some(Box::new(BothLocks { _first: first, _second: second })))
    }

    /// Those of the directory with fewer.
    fn available_bytes(&self) -> Result<Option<u64>> {
        let (first, second) = (self.first.available_bytes()?, self.second.available_bytes()?);
        Ok(first.into_iter().chain(second).min())
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        self.first.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.first.pipeline(depth)
    }

    fn set_read_wait(&self, wait: ReadWait) {
        self.first.set_read_wait(wait);
        self.second.set_read_wait(wait);
    }

    fn describe(&self) -> String {
        format!("{} and {}", self.first.describe(), self.second.describe())
    }
}

/// The locks of both directories, as far as there are any.
#[derive(Debug)]
struct BothLocks {
    _first: Option<Box<dyn DirectoryLock>>,
    _second: Option<Box<dyn DirectoryLock>>,
}

impl DirectoryLock for BothLocks {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlantedBug, SimulatedStorage};

    fn pair() -> (SimulatedStorage, SimulatedStorage, TwoDirectories) {
        let (first, second) = (SimulatedStorage::new(1), SimulatedStorage::new(2));
        let both = TwoDirectories::new(Arc::new(first.clone()), Arc::new(second.clone())).unwrap();
        (first, second, both)
    }

    fn create(storage: &dyn Storage, name: &str) {
        let file = storage.open(name, OpenMode::Create).unwrap();
        file.write_at(name.as_bytes(), 0).unwrap();
        file.sync().unwrap();
    }

    #[test]
    fn files_lie_where_they_were_placed() {
        let (first, second, both) = pair();
        both.place_in_second("young");
        create(&both, "young");
        create(&both, "old");
        assert_eq!(
            (first.list().unwrap(), second.list().unwrap()),
            (vec!["old".into()], vec!["young".into()])
        );
        assert_eq!(both.list().unwrap(), ["old", "young"]);
        assert!(both.open("young", OpenMode::Read).is_ok() && both.open("old", OpenMode::Read).is_ok());
        both.rename("young", "lost").unwrap();
        assert!(both.is_in_second("lost") && !both.is_in_second("young"));
        assert_eq!(both.rename("old", "lost").unwrap_err().kind(), ErrorKind::CrossesDevices);
        both.remove("lost").unwrap();
        create(&both, "lost");
        assert_eq!(first.list().unwrap(), ["lost", "old"]);
        assert!(second.list().unwrap().is_empty());
    }

    #[test]
    fn a_name_in_both_means_the_second_and_is_removed_from_both() {
        let (first, second, both) = pair();
        create(&first, "table");
        create(&second, "table");
        let both = TwoDirectories::new(both.first().clone(), both.second().clone()).unwrap();
        assert_eq!(both.list().unwrap(), ["table"]);
        assert!(both.is_in_second("table"));
        both.remove("table").unwrap();
        assert!(first.list().unwrap().is_empty() && second.list().unwrap().is_empty());
        assert_eq!(both.remove("table").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_sync_makes_the_names_of_both_survive() {
        for seed in 0..20 {
            let (first, second) = (SimulatedStorage::new(seed), SimulatedStorage::new(seed + 100));
            let both = TwoDirectories::new(Arc::new(first.clone()), Arc::new(second.clone())).unwrap();
            both.place_in_second("young");
            create(&both, "young");
            create(&both, "old");
            both.sync_directory().unwrap();
            first.crash();
            second.crash();
            assert_eq!(first.reopen().list().unwrap(), ["old"]);
            assert_eq!(second.reopen().list().unwrap(), ["young"]);
        }
    }

    #[test]
    fn a_directory_without_changes_is_not_synced() {
        let (_, second, both) = pair();
        let before = second.operation_count();
        create(&both, "old");
        both.sync_directory().unwrap();
        assert_eq!(second.operation_count(), before);
        // Otherwise the sync of a directory that has changes would go unnoticed too.
        second.plant(PlantedBug::SkipDirectorySync);
        both.place_in_second("young");
        create(&both, "young");
        both.sync_directory().unwrap();
        assert!(second.operation_count() > before);
    }

    #[test]
    fn both_directories_are_locked() {
        let (first, second, both) = pair();
        let lock = both.lock("LOCK").unwrap();
        assert!(first.lock("LOCK").is_err() && second.lock("LOCK").is_err());
        drop(lock);
        let held = second.lock("LOCK").unwrap();
        assert_eq!(both.lock("LOCK").unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(held);
        // The lock of the first directory, taken on the way, is free again.
        assert!(first.lock("LOCK").is_ok());
        let readers = both.lock_shared("LOCK").unwrap();
        assert!(readers.is_some() && both.lock("LOCK").is_err());
    }
}
