//! The lock of a directory against a second opening.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek, Write};
use std::path::Path;

use crate::error::FileError;
use crate::{DirectoryLock, LockedFile};

/// An exclusive `flock` on a file that holds the process id of its owner. The kernel releases it when the process
/// dies, however it dies; the file stays, because removing it would let two processes lock two files of one name.
#[derive(Debug)]
pub(super) struct FlockLock {
    _file: LockedFile,
}

impl DirectoryLock for FlockLock {}

impl FlockLock {
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let wrap = |error| FileError::wrap("lock", &name, None, error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(wrap)?;
        let locked = match LockedFile::exclusive(file) {
            Ok(locked) => locked,
            Err((file, TryLockError::WouldBlock)) => {
                return Err(match LockedFile::shared(file) {
                    Ok(_) => {
                        let message = format!("{name} is locked by a process that reads the directory");
                        Error::new(ErrorKind::WouldBlock, message)
                    }
                    Err((mut file, _)) => is_locked(&name, &mut file),
                });
            }
            Err((_, TryLockError::Error(error))) => return Err(wrap(error)),
        };
        let record = || -> Result<()> {
            let mut file = locked.file();
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The holder's name is a courtesy: on a full disk the lock must still be taken, to make room.
        let _ = record();
        Ok(Self { _file: locked })
    }

    /// Takes a lock that readers share. Returns `None` if there is no lock file, and so never was a writer.
    pub(super) fn share(path: &Path) -> Result<Option<Self>> {
        let name = path.display().to_string();
        let wrap = |error| FileError::wrap("lock", &name, None, error);
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrap(error)),
        };
        match LockedFile::shared(file) {
            Ok(locked) => Ok(Some(Self { _file: locked })),
            Err((mut file, TryLockError::WouldBlock)) => Err(is_locked(&name, &mut file)),
            Err((_, TryLockError::Error(error))) => Err(wrap(error)),
        }
    }
}

fn is_locked(name: &str, file: &mut File) -> Error {
    Error::new(ErrorKind::WouldBlock, format!("{name} is locked by {}", holder(file)))
}

/// What the lock file and the process table say about the holder.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // A damaged lock file must not produce a damaged message: anything but a number counts as unknown.
    let _ = file.take(32).read_to_string(&mut text);
    match text.trim().parse::<u32>() {
        Ok(pid) if pid == std::process::id() => format!("this process ({pid})"),
        Ok(pid) => match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
            Ok(command) => format!("process {pid} ({})", command.trim()),
            Err(_) => format!("process {pid}"),
        },
        Err(_) => "an unknown process".to_owned(),
    }
}
