//! [`Directory`]: opens the files of a directory, and keeps track of the handles of each name.

use std::collections::HashMap;
use std::io::{Error, Result};
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, Weak};

use rustix::fs::OFlags;

use super::file_handle::NamedFile;
use super::open_file::OpenFile;
use super::open_files::OpenFiles;
use super::options::{IoOptions, ReadWait, Usage};
use super::system;
use super::waiting::Waiting;
use crate::OpenMode;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// An open directory, shared by the storage and the handles of its files.
#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    options: IoOptions,
    /// Whether direct I/O has been seen to work here.
    direct: AtomicBool,
    /// What threads do while they read.
    waiting: Arc<Waiting>,
    open_files: OpenFiles,
    /// The handles in use, by the names that they were opened under.
    handles: Mutex<HashMap<String, Vec<Weak<NamedFile>>>>,
}

impl Directory {
    pub fn new(fd: OwnedFd, options: IoOptions) -> Self {
        let direct = options.direct == Usage::Auto && system::probe_direct(&fd);
        Self {
            fd,
            options,
            direct: AtomicBool::new(direct),
            waiting: Arc::default(),
            open_files: OpenFiles::new(options.open_files_max),
            handles: Mutex::default(),
        }
    }

    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub fn open_files(&self) -> &OpenFiles {
        &self.open_files
    }

    pub fn is_direct(&self) -> bool {
        self.direct.load(Ordering::Relaxed)
    }

    pub fn read_wait(&self) -> ReadWait {
        self.waiting.get()
    }

    pub fn set_read_wait(&self, wait: ReadWait) {
        self.waiting.set(wait);
    }

    /// Opens the file `name`. If the process has no descriptor left, files that can be opened again give up theirs.
    ///
    /// # Errors
    /// Those of the operating system, without their context.
    pub fn open_file(&self, name: &str, mode: OpenMode) -> Result<OpenFile> {
        loop {
            match self.try_open(name, mode) {
                Err(error) if is_out_of_descriptors(&error) && self.open_files.close_some() => {}
                outcome => return outcome,
            }
        }
    }

    fn try_open(&self, name: &str, mode: OpenMode) -> Result<OpenFile> {
        let waiting = || Arc::clone(&self.waiting);
        let flags = match mode {
            OpenMode::Read => OFlags::RDONLY,
            OpenMode::Write | OpenMode::Create => OFlags::RDWR,
        };
        let buffered = match mode {
            OpenMode::Read => None,
            OpenMode::Write => Some(system::open_buffered(&self.fd, name, flags)?),
            OpenMode::Create => {
                Some(system::open_buffered(&self.fd, name, flags | OFlags::CREATE | OFlags::EXCL)?)
            }
        };
        if self.options.direct == Usage::Auto {
            match system::open_direct(&self.fd, name, flags) {
                Ok(Some((file, alignment))) => {
                    self.direct.store(true, Ordering::Relaxed);
                    return Ok(OpenFile::new(name, file, Some(alignment), buffered, waiting()));
                }
                Ok(None) => {}
                Err(error) => {
                    if mode == OpenMode::Create {
                        // A caller that tries again must not find the name taken.
                        let _ = rustix::fs::unlinkat(&self.fd, name, rustix::fs::AtFlags::empty());
                    }
                    return Err(error);
                }
            }
        }
        let file = match buffered {
            Some(file) => file,
            None => system::open_buffered(&self.fd, name, flags)?,
        };
        system::advise_random(&file);
        Ok(OpenFile::new(name, file, None, None, waiting()))
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<NamedFile>>>> {
        // The map is valid even if a thread panicked while it held the lock.
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a handle.
    pub fn note(&self, file: &Arc<NamedFile>) {
        self.handles().entry(file.name().to_owned()).or_default().push(Arc::downgrade(file));
    }

    /// Forgets the handles of this name that are gone.
    pub fn forget(&self, name: &str) {
        let mut handles = self.handles();
        if let Some(files) = handles.get_mut(name) {
            files.retain(|file| file.strong_count() > 0);
            if files.is_empty() {
                handles.remove(name);
            }
        }
    }

    /// Opens the handles of this name for good: the name is about to be removed, or to mean another file.
    ///
    /// # Errors
    /// When a closed one can't be opened; then the name has to stay.
    pub fn keep_open(&self, name: &str) -> Result<()> {
        // Outside of the lock, which the last owner of a handle takes.
        let files: Vec<_> =
            self.handles().get(name).into_iter().flatten().filter_map(Weak::upgrade).collect();
        for file in files {
            self.open_files.keep(&file);
            match file.reopen() {
                // Another thread or process removed it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }
}

/// Whether the process or the system has no descriptor left.
fn is_out_of_descriptors(error: &Error) -> bool {
    use rustix::io::Errno;
    Errno::from_io_error(error).is_some_and(|errno| errno == Errno::MFILE || errno == Errno::NFILE)
}
