//! Files of many directories as one storage for reading, where it is known which directory has which file.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use crate::error::{FileError, check_name};
use crate::{DirectoryLock, File, OpenMode, Pipeline, ReadRequest, ReadWait, Storage};

/// Files of many directories under one set of names, none of which ever changes.
///
/// Batches and pipelines are those of the directory that has the lock, so all directories must be of one kind.
#[derive(Debug)]
pub struct ManyDirectories {
    /// Has the lock, and none of the files.
    first: Arc<dyn Storage>,
    directories: Vec<Arc<dyn Storage>>,
    /// Positions of the files' directories.
    places: BTreeMap<String, usize>,
}

impl ManyDirectories {
    /// The files in `places`, each in the directory at this position.
    pub fn new(
        first: Arc<dyn Storage>,
        directories: Vec<Arc<dyn Storage>>,
        places: BTreeMap<String, usize>,
    ) -> Self {
        Self { first, directories, places }
    }

    fn refused<T>(operation: &'static str, name: &str) -> Result<T> {
        Err(FileError::wrap(operation, name, None, ErrorKind::ReadOnlyFilesystem.into()))
    }
}

impl Storage for ManyDirectories {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        check_name(name)?;
        if mode != OpenMode::Read {
            return Self::refused("open for writing", name);
        }
        let missing = || FileError::wrap("open", name, None, ErrorKind::NotFound.into());
        let place = self.places.get(name).and_then(|&place| self.directories.get(place));
        place.ok_or_else(missing)?.open(name, mode)
    }

    fn remove(&self, name: &str) -> Result<()> {
        Self::refused("remove", name)
    }

    fn rename(&self, from: &str, _to: &str) -> Result<()> {
        Self::refused("rename", from)
    }

    fn list(&self) -> Result<Vec<String>> {
        Ok(self.places.keys().cloned().collect())
    }

    fn sync_directory(&self) -> Result<()> {
        Ok(())
    }

    fn lock(&self, _name: &str) -> Result<Box<dyn DirectoryLock>> {
        Err(Error::from(ErrorKind::ReadOnlyFilesystem))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        self.first.lock_shared(name)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        self.first.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.first.pipeline(depth)
    }

    fn set_read_wait(&self, wait: ReadWait) {
        self.first.set_read_wait(wait);
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        self.first.available_bytes()
    }

    fn describe(&self) -> String {
        format!("{} directories, {}", self.directories.len(), self.first.describe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SimulatedStorage;

    #[test]
    fn files_are_found_in_their_directories_and_nothing_changes() {
        let directories = [1, 2].map(SimulatedStorage::new);
        for (number, directory) in directories.iter().enumerate() {
            let name = format!("file-{number}");
            directory.open(&name, OpenMode::Create).unwrap().write_at(&[number as u8], 0).unwrap();
            directory.open("unknown", OpenMode::Create).unwrap();
        }
        let places = (0..2).map(|number| (format!("file-{number}"), number)).collect();
        let before = directories[0].contents();
        let opened = directories.clone().map(|directory| Arc::new(directory) as Arc<dyn Storage>);
        let first = Arc::new(SimulatedStorage::new(3));
        let all = ManyDirectories::new(first.clone(), opened.to_vec(), places);
        assert_eq!(all.list().unwrap(), ["file-0", "file-1"]);
        let files = [0, 1].map(|number| all.open(&format!("file-{number}"), OpenMode::Read).unwrap());
        let mut buffers = [[9], [9]];
        let mut requests: Vec<ReadRequest<'_>> = files
            .iter()
            .zip(&mut buffers)
            .map(|(file, buffer)| ReadRequest { file: &**file, offset: 0, buffer, result: Ok(0) })
            .collect();
        all.read_batch(&mut requests);
        assert!(requests.into_iter().all(|request| request.result.unwrap() == 1));
        assert_eq!(buffers, [[0], [1]]);
        assert_eq!(all.open("unknown", OpenMode::Read).unwrap_err().kind(), ErrorKind::NotFound);
        assert!(all.open("file-0", OpenMode::Write).is_err() && all.open("new", OpenMode::Create).is_err());
        assert!(
            all.remove("file-0").is_err() && all.rename("file-0", "x").is_err() && all.lock("L").is_err()
        );
        assert_eq!(directories[0].contents(), before);
        drop(first.lock("LOCK").unwrap());
        assert!(all.lock_shared("LOCK").unwrap().is_some());
    }
}
