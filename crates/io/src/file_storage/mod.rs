//! A real directory.
//!
//! Direct I/O where the file system allows it, io_uring where the system permits it; elsewhere slower calls give the
//! same results.

mod alignment;
mod directories;
mod directory;
mod file_handle;
mod io_threads;
mod lock;
mod open_file;
mod open_files;
mod options;
#[cfg(target_os = "linux")]
mod poll_budget;
#[cfg(target_os = "linux")]
mod poll_pause;
#[cfg(target_os = "linux")]
mod polling;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod ring_batch;
#[cfg(target_os = "linux")]
mod ring_pipeline;
mod system;
#[cfg(target_os = "linux")]
mod thread_time;
mod waiting;

use std::any::Any;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::error::{FileError, check_name};
use crate::{DirectoryLock, File, OpenMode, Pipeline, ReadRequest, Storage};
use directory::Directory;
use file_handle::FileHandle;
use io_threads::{IoThreads, ThreadPipeline};
use lock::FlockLock;
pub use options::{IoOptions, ReadWait, Usage};

/// Maximum depth of a pipeline; a larger request gets this.
const PIPELINE_DEPTH_MAX: usize = 1024;

/// The files of one real directory.
///
/// Only one handle per file should write at a time: unaligned writes through two handles of one file may lose bytes of
/// a page that they share.
#[derive(Debug)]
pub struct FileStorage {
    path: PathBuf,
    directory: Arc<Directory>,
    options: IoOptions,
    threads: Arc<IoThreads>,
}

impl FileStorage {
    /// Opens an existing directory. Files are opened relative to it, so that renaming it does no harm.
    ///
    /// # Errors
    /// Those of the operating system, with the path in the message.
    pub fn open(path: impl AsRef<Path>, options: IoOptions) -> Result<Self> {
        let path = path.as_ref();
        let directory =
            rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| {
                    FileError::wrap("open directory", &path.display().to_string(), None, error.into())
                })?;
        let directory = Arc::new(Directory::new(directory, options));
        Ok(Self { path: path.to_owned(), directory, options, threads: Arc::default() })
    }

    /// Opens a directory after creating it and its parents where they are missing. Returns when the whole path survives
    /// a power cut, even if an earlier attempt was cut short.
    ///
    /// # Errors
    /// Those of the operating system, with the path in the message.
    pub fn create(path: impl AsRef<Path>, options: IoOptions) -> Result<Self> {
        let path = path.as_ref();
        directories::create_all(&directories::RealDirectories, path)?;
        Self::open(path, options)
    }

    /// The directory, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn directory_error(&self, operation: &'static str, error: impl Into<Error>) -> Error {
        FileError::wrap(operation, &self.path.display().to_string(), None, error.into())
    }
}

impl Storage for FileStorage {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let operation = if mode == OpenMode::Create { "create" } else { "open" };
        let handle = FileHandle::open(&self.directory, name, mode)
            .map_err(|error| FileError::wrap(operation, name, None, error))?;
        Ok(Arc::new(handle))
    }

    fn remove(&self, name: &str) -> Result<()> {
        check_name(name)?;
        self.directory.keep_open(name).map_err(|error| FileError::wrap("remove", name, None, error))?;
        rustix::fs::unlinkat(self.directory.fd(), name, AtFlags::empty())
            .map_err(|error| FileError::wrap("remove", name, None, error.into()))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(from)?;
        check_name(to)?;
        let wrap = |error| FileError::wrap("rename", &format!("{from} to {to}"), None, error);
        [from, to].into_iter().try_for_each(|name| self.directory.keep_open(name)).map_err(wrap)?;
        rustix::fs::renameat(self.directory.fd(), from, self.directory.fd(), to)
            .map_err(|error| wrap(error.into()))
    }

    fn list(&self) -> Result<Vec<String>> {
        let wrap = |error: rustix::io::Errno| self.directory_error("list", error);
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(self.directory.fd()).map_err(wrap)? {
            let entry = entry.map_err(wrap)?;
            let is_file = match entry.file_type() {
                rustix::fs::FileType::RegularFile => true,
                rustix::fs::FileType::Unknown => self.is_regular(entry.file_name()),
                _ => false,
            };
            // A name that is not UTF-8 is not one of ours: `open` could not have created it.
            if is_file && let Ok(name) = entry.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn sync_directory(&self) -> Result<()> {
        system::sync_directory(self.directory.fd())
            .map_err(|error| self.directory_error("sync directory", error))
    }

    fn available_bytes(&self) -> Result<Option<u64>> {
        system::available_bytes(self.directory.fd())
            .map_err(|error| self.directory_error("stat the file system of", error))
    }

    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>> {
        check_name(name)?;
        Ok(Box::new(FlockLock::acquire(&self.path.join(name))?))
    }

    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        check_name(name)?;
        Ok(FlockLock::share(&self.path.join(name))?.map(|lock| Box::new(lock) as Box<dyn DirectoryLock>))
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        if let [request] = requests {
            // Nothing overlaps with a single read, and the plain call is the cheapest way.
            request.result = request.file.read_at(request.buffer, request.offset);
            return;
        }
        #[cfg(target_os = "linux")]
        if self.options.uring == Usage::Auto && self.read_by_ring(requests) {
            return;
        }
        self.threads.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        let depth = depth.clamp(1, PIPELINE_DEPTH_MAX);
        #[cfg(target_os = "linux")]
        if self.options.uring == Usage::Auto
            && let Ok(pipeline) = ring_pipeline::RingPipeline::new(depth)
        {
            return Box::new(pipeline);
        }
        Box::new(ThreadPipeline::new(Arc::clone(&self.threads), depth))
    }

    fn set_read_wait(&self, wait: ReadWait) {
        let can_poll = cfg!(target_os = "linux") && self.options.uring == Usage::Auto;
        self.directory.set_read_wait(if can_poll { wait } else { ReadWait::Sleep });
    }

    fn link_from(&self, source: &dyn Storage, name: &str) -> Result<bool> {
        use rustix::io::Errno;
        check_name(name)?;
        let Some(source) = source.as_any().and_then(|any| any.downcast_ref::<FileStorage>()) else {
            return Ok(false);
        };
        match rustix::fs::linkat(source.directory.fd(), name, self.directory.fd(), name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            // Another file system, a file system without links, or too many links to one file.
            Err(Errno::XDEV | Errno::PERM | Errno::NOTSUP | Errno::MLINK) => Ok(false),
            Err(error) => Err(FileError::wrap("link", name, None, error.into())),
        }
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn describe(&self) -> String {
        let access = if self.directory.is_direct() { "direct" } else { "buffered" };
        let mechanism = if self.uses_uring() { "io_uring" } else { "pread threads" };
        let wait = match self.directory.read_wait() {
            ReadWait::Poll if self.uses_uring() => ", polled",
            ReadWait::Adapt if self.uses_uring() => ", polled at times",
            _ => "",
        };
        format!("{access} {mechanism}{wait}")
    }
}

impl FileStorage {
    /// Whether batches go through io_uring here.
    fn uses_uring(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            self.options.uring == Usage::Auto && ring::is_available()
        }
        #[cfg(not(target_os = "linux"))]
        {
            false
        }
    }

    /// Reads a batch through the ring of this thread, if it can have one. A thread with many reads in flight is awake
    /// for the next before it could sleep, so it polls only where it was told to.
    #[cfg(target_os = "linux")]
    fn read_by_ring(&self, requests: &mut [ReadRequest<'_>]) -> bool {
        match self.directory.read_wait() {
            ReadWait::Poll => ring_batch::read_batch(requests, polling::poll),
            ReadWait::Sleep | ReadWait::Adapt => ring_batch::read_batch(requests, ring::Ring::enter),
        }
    }

    /// For file systems whose directory entries carry no type.
    fn is_regular(&self, name: &std::ffi::CStr) -> bool {
        rustix::fs::statat(self.directory.fd(), name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file())
    }
}
