//! Directories that benchmarks work in: made empty, and removed at the end or when the user interrupts.
//!
//! Invariant: what is removed was made by the same [`WorkDirectories`], or was opened by a benchmark that removes it at
//! its regular end. A directory that was there before is removed by no interruption.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::error::BenchError;

/// Cargo marks its output directory with this file.
const CARGO_MARK: &str = "target/CACHEDIR.TAG";
/// How often a removal is repeated that meets files made at the same time.
const REMOVALS_MAX: usize = 500;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// Where benchmarks make their directories by default: Cargo's `target` if the current directory has one, else the
/// system's temporary directory.
pub fn default_parent() -> PathBuf {
    if Path::new(CARGO_MARK).is_file() { PathBuf::from("target") } else { std::env::temp_dir() }
}

/// The directories that a process has made and not removed yet. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct WorkDirectories(Arc<Mutex<Made>>);

#[derive(Debug, Default)]
struct Made {
    /// Directories with all that is in them, in the order of their creation.
    trees: Vec<PathBuf>,
    /// Directories above these that were missing, outermost first.
    parents: Vec<PathBuf>,
    /// Whether no more may be made.
    is_closed: bool,
}

/// A directory that a benchmark has for itself. It stays when this is dropped.
#[derive(Debug)]
pub struct WorkDirectory {
    path: PathBuf,
    directories: WorkDirectories,
    /// Keeps other processes out. The kernel releases it with the process.
    _lock: File,
}

impl WorkDirectories {
    /// Makes the directory `name` in `parent`, which is made if it is missing. What an earlier run left under that name
    /// is removed.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if another process works there, or something else has that name.
    pub fn create(&self, parent: &Path, name: &str) -> Result<WorkDirectory, BenchError> {
        let path = parent.join(name);
        // An interruption comes before all of this, or removes what was made.
        let mut made = self.made();
        if made.is_closed {
            return Err(io::Error::from(io::ErrorKind::Interrupted).into());
        }
        let missing = parent.ancestors().take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        made.parents.extend(missing.into_iter().rev());
        fs::create_dir_all(parent)?;
        if let Ok(metadata) = fs::symlink_metadata(&path) {
            if !metadata.is_dir() {
                let reason = format!("{} is in the way: it is no directory", path.display());
                return Err(BenchError::Usage(reason));
            }
            let _lock = lock(&path)?;
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        let lock = lock(&path)?;
        if !made.trees.contains(&path) {
            made.trees.push(path.clone());
        }
        drop(made);
        Ok(WorkDirectory { path, directories: self.clone(), _lock: lock })
    }

    /// The directory `name` in `parent`, which an earlier run has kept. An interruption leaves it.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if it is missing, or another process works there.
    pub fn open(&self, parent: &Path, name: &str) -> Result<WorkDirectory, BenchError> {
        let path = parent.join(name);
        if !path.is_dir() {
            let reason = format!("{} does not exist: load it first, with --keep", path.display());
            return Err(BenchError::Usage(reason));
        }
        Ok(WorkDirectory { _lock: lock(&path)?, path, directories: self.clone() })
    }

    /// What was made and is still there.
    pub fn left(&self) -> Vec<PathBuf> {
        self.made().trees.iter().filter(|path| path.exists()).cloned().collect()
    }

    /// Removes all that was made, while the benchmark may still be at work there, and lets nothing more be made.
    ///
    /// # Errors
    /// Those of the file system; what comes after the first is not removed.
    pub fn remove_all(&self) -> io::Result<Vec<PathBuf>> {
        let mut made = self.made();
        made.is_closed = true;
        let mut removed = Vec::new();
        for path in std::mem::take(&mut made.trees) {
            if path.exists() {
                remove_tree(&path)?;
                removed.push(path);
            }
        }
        made.remove_parents();
        Ok(removed)
    }

    fn made(&self) -> MutexGuard<'_, Made> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl Made {
    /// Removes the parents that are empty.
    fn remove_parents(&mut self) {
        while let Some(parent) = self.parents.pop() {
            // It stays if the user has put something there, and then so do those above.
            if fs::remove_dir(&parent).is_err() {
                self.parents.clear();
            }
        }
    }
}

impl WorkDirectory {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Lets it stay, also when the user interrupts.
    pub fn keep(&self) {
        self.directories.made().trees.retain(|path| *path != self.path);
    }

    /// Removes it with all that is in it, and directories above it that were made for it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(self) -> io::Result<()> {
        let mut made = self.directories.made();
        remove_tree(&self.path)?;
        made.trees.retain(|path| *path != self.path);
        if made.trees.is_empty() {
            made.remove_parents();
        }
        Ok(())
    }
}

fn lock(path: &Path) -> Result<File, BenchError> {
    let directory = File::open(path)?;
    match directory.try_lock() {
        Err(TryLockError::WouldBlock) => Err(BenchError::Usage(format!(
            "another benchmark works in {}: choose another --dir",
            path.display()
        ))),
        // A file system without locks keeps nobody out.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(directory),
    }
}

/// Removes a directory in which files may still be made; succeeds if it is gone already.
fn remove_tree(path: &Path) -> io::Result<()> {
    for _ in 0..REMOVALS_MAX {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(REMOVAL_PAUSE)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => return Ok(()),
            outcome => return outcome,
        }
    }
    fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_removed_and_nothing_else() {
        let outer = tempfile::tempdir().unwrap();
        let directories = WorkDirectories::default();
        let parent = outer.path().join("a/b");
        let first = directories.create(&parent, "first").unwrap();
        let second = directories.create(&parent, "second").unwrap();
        fs::write(second.path().join("file"), "bytes").unwrap();
        first.remove().unwrap();
        assert_eq!(directories.left(), [parent.join("second")]);
        fs::write(outer.path().join("a/mine"), "bytes").unwrap();
        assert_eq!(directories.remove_all().unwrap(), [parent.join("second")]);
        assert!(!parent.exists() && outer.path().join("a/mine").exists());
        assert!(directories.create(&parent, "third").is_err(), "nothing is made after an interruption");
        assert!(!parent.exists());
    }

    #[test]
    fn what_was_there_or_is_to_be_kept_survives_an_interruption() {
        let outer = tempfile::tempdir().unwrap();
        let kept = WorkDirectories::default();
        kept.create(outer.path(), "store").unwrap().keep();
        assert!(kept.remove_all().unwrap().is_empty());
        let opening = WorkDirectories::default();
        assert!(matches!(opening.open(outer.path(), "other"), Err(BenchError::Usage(_))));
        let store = opening.open(outer.path(), "store").unwrap();
        assert!(opening.remove_all().unwrap().is_empty() && store.path().exists());
        // The regular end removes it.
        store.remove().unwrap();
        assert!(outer.path().exists() && !outer.path().join("store").exists());
    }

    #[test]
    fn a_directory_in_use_or_a_file_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let directories = WorkDirectories::default();
        let used = directories.create(outer.path(), "used").unwrap();
        fs::write(used.path().join("file"), "bytes").unwrap();
        assert!(matches!(directories.create(outer.path(), "used"), Err(BenchError::Usage(_))));
        assert!(used.path().join("file").exists());
        drop(used);
        assert!(directories.create(outer.path(), "used").is_ok(), "what an earlier run left is replaced");
        fs::write(outer.path().join("file"), "bytes").unwrap();
        assert!(matches!(directories.create(outer.path(), "file"), Err(BenchError::Usage(_))));
    }
}
