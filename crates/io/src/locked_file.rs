//! A file that one process, or its readers, have locked.

use std::fs::{File, TryLockError};

/// A file with a `flock`, which ends when this value is dropped.
///
/// Closing the file would not be enough: the lock belongs to what was opened, and a child process that another thread
/// has just forked has a copy of the descriptor until it executes its program. A second opening in that moment would be
/// refused. So the lock is released by name. A forked child that drops its copy of this value releases nothing, because
/// the lock is its parent's.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    owner_process: u32,
}

impl LockedFile {
    /// Takes the lock for this value alone, without waiting.
    ///
    /// # Errors
    /// The file, as it was, with the reason: another has a lock on it, or the system's error.
    pub fn exclusive(file: File) -> Result<Self, (File, TryLockError)> {
        match file.try_lock() {
            Ok(()) => Ok(Self::new(file)),
            Err(error) => Err((file, error)),
        }
    }

    /// Takes a lock that others may share, without waiting.
    ///
    /// # Errors
    /// As [`exclusive`](Self::exclusive).
    pub fn shared(file: File) -> Result<Self, (File, TryLockError)> {
        match file.try_lock_shared() {
            Ok(()) => Ok(Self::new(file)),
            Err(error) => Err((file, error)),
        }
    }

    fn new(file: File) -> Self {
        Self { file, owner_process: std::process::id() }
    }

    /// Returns the file.
    pub const fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.owner_process == std::process::id() {
            // If it fails, the lock ends with the last copy of the descriptor.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_ends_although_a_copy_of_the_descriptor_lives_on() {
        let path = std::env::temp_dir().join(format!("alluvium-locked-file-{}", std::process::id()));
        let open = || File::options().create(true).truncate(false).write(true).open(&path).unwrap();
        let file = open();
        let copy = file.try_clone().unwrap();
        let locked = LockedFile::exclusive(file).unwrap();
        assert!(matches!(LockedFile::exclusive(open()), Err((_, TryLockError::WouldBlock))));
        drop(locked);
        let readers = [LockedFile::shared(open()).unwrap(), LockedFile::shared(open()).unwrap()];
        assert!(matches!(LockedFile::exclusive(open()), Err((_, TryLockError::WouldBlock))));
        drop(readers);
        LockedFile::exclusive(open()).unwrap();
        drop(copy);
        std::fs::remove_file(path).unwrap();
    }
}
