//! A mapped file as a medium.

use std::fs::File;
use std::io;

use crate::memory::{CAN_FLUSH, LineFlush, Ring, UNIT_BYTES};
use crate::sync::{AtomicU64, Mutex, Ordering};

use super::header::{SESSION_AT, SessionState};
use super::medium::{LINE_BYTES, Medium};

/// What a cache that survives promises: see [`Builder::survive`](crate::Builder::survive).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survive {
    /// The content survives the end of the process, however it ends, but not that of the system: the system keeps what
    /// was stored. Nothing is flushed.
    Process,
    /// The content also survives a loss of power, if the file is persistent memory (DAX): the processor's cache is
    /// flushed where an older item could come back otherwise. With any other file, as
    /// [`Process`](Self::Process) at the cost of [`Pmem`](Self::Pmem).
    Pmem,
    /// The content also survives a loss of power on any file: a write that replaces or removes an item waits for the
    /// device. Items that were set less than some half a minute ago may be absent afterwards.
    Power,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct FileMedium {
    ring: Ring,
    len: usize,
    survive: Survive,
    line_flush: LineFlush,
    flushes: AtomicU64,
    /// With [`Survive::Power`]: the lines that were flushed since the last fence, as numbers.
    flushed: Mutex<Vec<usize>>,
    failure: Mutex<Option<io::Error>>,
    has_failed: AtomicU64,
}

impl FileMedium {
    /// The first `len` bytes of `file`, which have been allocated.
    ///
    /// # Errors
    /// The system's error if it refuses the mapping, and `Unsupported` where the processor cannot flush its cache.
    pub fn new(file: &File, len: usize, survive: Survive) -> io::Result<Self> {
        if survive == Survive::Pmem && !CAN_FLUSH {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this processor has no instruction that flushes its cache",
            ));
        }
        Ok(Self {
            ring: Ring::file(file, len)?,
            len,
            survive,
            line_flush: LineFlush::detect(),
            flushes: AtomicU64::new(0),
            flushed: Mutex::default(),
            failure: Mutex::default(),
            has_failed: AtomicU64::new(0),
        })
    }

    /// Converts the file's pages to huge ones, if the system can.
    pub fn use_huge_pages(&self) {
        self.ring.use_huge_pages(0, self.len, self.len);
    }

    /// The promise.
    pub fn survive(&self) -> Survive {
        self.survive
    }

    /// Writes the bytes `at..at + len` to the device, and waits.
    ///
    /// # Errors
    /// The system's error if they could not be written.
    pub fn sync(&self, at: usize, len: usize) -> io::Result<()> {
        self.ring.sync(at, len)
    }

    /// Why a fence failed, once one has.
    pub fn failure(&self) -> Option<io::ErrorKind> {
        if self.has_failed.load(Ordering::Acquire) == 0 {
            return None;
        }
        let failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.as_ref().map(io::Error::kind)
    }

    /// Writes the pages with the flushed lines to the device. Another thread's fence may have taken some of them: it
    /// holds the lock until they are written.
    #[cold]
    fn fence_pages(&self) {
        let mut flushed = self.flushed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        flushed.sort_unstable();
        let mut synced = 0;
        for line in flushed.drain(..) {
            let at = line * LINE_BYTES;
            if at < synced {
                continue;
            }
            synced = (at + 1).next_multiple_of(crate::memory::PAGE_BYTES);
            if let Err(error) = self.ring.sync(at, LINE_BYTES) {
                let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                failure.get_or_insert(error);
                self.has_failed.store(1, Ordering::Release);
                // The next opening drops the content. If this is not written either, nothing can be done.
                self.store(SESSION_AT, SessionState::Failed.word());
                let _ = self.sync(SESSION_AT, LINE_BYTES);
            }
        }
    }
}

impl Medium for FileMedium {
    fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn load(&self, at: usize) -> u64 {
        self.ring.word(at / UNIT_BYTES).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store(&self, at: usize, word: u64) {
        self.ring.word(at / UNIT_BYTES).store(word, Ordering::Relaxed);
    }

    #[inline(always)]
    fn copy_out(&self, at: usize, out: &mut [u8]) {
        self.ring.copy_out(at, out);
    }

    #[inline(always)]
    fn copy_in(&self, at: usize, bytes: &[u8]) {
        self.ring.copy_in(at, bytes);
    }

    #[inline(always)]
    fn is_equal(&self, at: usize, bytes: &[u8]) -> bool {
        self.ring.is_equal(at, bytes)
    }

    #[inline(always)]
    fn prefetch(&self, at: usize, len: usize) {
        self.ring.prefetch(at / UNIT_BYTES, len);
    }

    #[inline(always)]
    fn flush(&self, at: usize) {
        match self.survive {
            Survive::Process => return,
            Survive::Pmem => self.line_flush.flush(self.ring.word(at / UNIT_BYTES)),
            Survive::Power => {
                let mut flushed = self.flushed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                flushed.push(at / LINE_BYTES);
            }
        }
        self.flushes.fetch_add(1, Ordering::Relaxed);
    }

    #[inline(always)]
    fn fence(&self) {
        match self.survive {
            Survive::Process => {}
            Survive::Pmem => self.line_flush.fence(),
            Survive::Power => self.fence_pages(),
        }
    }

    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }
}
