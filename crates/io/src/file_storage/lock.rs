//! The lock of a directory against a second opening.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek, Write};
use std::path::Path;

use crate::DirectoryLock;
use crate::error::FileError;

/// An exclusive `flock` on a file that holds the process id of its owner. The kernel releases it when the process
/// dies, however it dies; the file stays, because removing it would let two processes lock two files of one name.
#[derive(Debug)]
pub(super) struct FlockLock {
    _file: File,
}

impl DirectoryLock for FlockLock {}

impl FlockLock {
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let wrap = |error| FileError::wrap("lock", &name, None, error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(wrap)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if file.try_lock_shared().is_ok() => {
                let message = format!("{name} is locked by a process that reads the directory");
                return Err(Error::new(ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::WouldBlock) => return Err(is_locked(&name, &mut file)),
            Err(TryLockError::Error(error)) => return Err(wrap(error)),
        }
        let mut record = || -> Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        // The holder's name is a courtesy: on a full disk the lock must still be taken, to make room.
        let _ = record();
        Ok(Self { _file: file })
    }

    /// Takes a lock that readers share. Returns `None` if there is no lock file, and so never was a writer.
    pub(super) fn share(path: &Path) -> Result<Option<Self>> {
        let name = path.display().to_string();
        let wrap = |error| FileError::wrap("lock", &name, None, error);
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrap(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Err(is_locked(&name, &mut file)),
            Err(TryLockError::Error(error)) => Err(wrap(error)),
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
