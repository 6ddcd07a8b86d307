//! [`OpenFiles`]: how many files of a directory are open for reading at a time, and which are closed for others.

use std::sync::{Arc, PoisonError, Weak};

use super::file_handle::NamedFile;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Descriptors reserved for the process's sockets, logs, manifests, locks and rings, whatever its limit.
const RESERVE: usize = 64;
/// Minimum of the default number of open files: with fewer, nearly each lookup would open a file.
const OPEN_FILES_MIN: usize = 16;
/// Maximum of the default number of open files. More are not worth having: opening a file takes microseconds.
const OPEN_FILES_MAX: usize = 1 << 16;

/// The files that are open for reading and may be closed, in a clock: when its hand passes, a file that was used since
/// the last visit stays, and the first that was not is closed.
#[derive(Debug)]
pub(super) struct OpenFiles {
    max: usize,
    /// Number of files in the clock that are gone, and so closed.
    dropped: AtomicUsize,
    clock: Mutex<Clock>,
}

#[derive(Debug, Default)]
struct Clock {
    files: Vec<Weak<NamedFile>>,
    hand: usize,
}

impl OpenFiles {
    /// At most `max` files, at least one; [`default_max`] by default.
    pub fn new(max: Option<usize>) -> Self {
        let max = max.unwrap_or_else(default_max).max(1);
        Self { max, dropped: AtomicUsize::new(0), clock: Mutex::default() }
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        // The list is valid even if a thread panicked while it held the lock.
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes files until one more may be open.
    pub fn make_room(&self) {
        let mut clock = self.clock();
        if clock.files.len() >= self.max && self.dropped.swap(0, Ordering::Relaxed) > 0 {
            clock.files.retain(|file| file.strong_count() > 0);
        }
        while clock.files.len() >= self.max {
            clock.close_one();
        }
    }

    /// Closes an eighth of the open files when the process is out of descriptors, even if fewer than the maximum are
    /// open. Returns `false` if no file is open.
    pub fn close_some(&self) -> bool {
        let mut clock = self.clock();
        let some = clock.files.len().div_ceil(8);
        (0..some).for_each(|_| clock.close_one());
        some > 0
    }

    /// Registers a file that was opened.
    pub fn add(&self, file: Weak<NamedFile>) {
        self.clock().files.push(file);
    }

    /// Like [`OpenFiles::add`], for a file that was kept open because it was written.
    pub fn add_writer(&self, file: &Arc<NamedFile>) {
        let mut clock = self.clock();
        file.set_kept(false);
        clock.files.push(Arc::downgrade(file));
    }

    /// Keeps a file from being closed from now on, because its name is about to go. It may be closed already.
    pub fn keep(&self, file: &Arc<NamedFile>) {
        let mut clock = self.clock();
        file.set_kept(true);
        file.set_nameless();
        clock.files.retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(file)));
    }

    /// Counts a file that is gone.
    pub fn count_dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Clock {
    /// Removes one file from the clock, and closes it.
    fn close_one(&mut self) {
        // At most two rounds: the first clears the marks of use, though other threads may set them again.
        for _ in 0..2 * self.files.len() {
            self.hand %= self.files.len();
            match self.files[self.hand].upgrade() {
                Some(file) if file.take_used() => self.hand += 1,
                _ => break,
            }
        }
        if self.files.is_empty() {
            return;
        }
        let last = self.files.len() - 1;
        let file = self.files.swap_remove(self.hand.min(last)).upgrade();
        // A file whose name was removed while the file was being opened was added nevertheless.
        if let Some(file) = file.filter(|file| !file.is_kept()) {
            file.close();
        }
    }
}

/// Half of the descriptors that the process may have now, after the reserve is subtracted.
fn default_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    (limit.saturating_sub(RESERVE) / 2).clamp(OPEN_FILES_MIN, OPEN_FILES_MAX)
}
