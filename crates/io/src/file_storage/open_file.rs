//! One open file of a real directory.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, PoisonError};

use super::alignment::{DirectAlignment, Span};
use super::options::ReadWait;
use super::waiting::Waiting;
use crate::error::FileError;
use crate::sync::RwLock;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{ALIGNMENT, AlignedBuffer};

/// Unaligned reads and writes of any size go through bounce buffers of at most this size.
const BOUNCE_BYTES_MAX: usize = 1 << 20;

/// The descriptors behind a [`FileHandle`](super::file_handle::FileHandle).
///
/// Under direct I/O, whole pages go through `file` and bypass the page cache; the pages at the edges of an unaligned
/// write go through `buffered`, where the kernel reads, changes and later writes them, and keeps the file's exact
/// length. The kernel writes dirty pages back before a direct read of them and drops clean ones at a direct write. It
/// cannot handle a direct write *during* a buffered one of the same page; `edges` keeps these apart: unaligned writes
/// hold it exclusively, aligned ones share it.
#[derive(Debug)]
pub(super) struct OpenFile {
    name: String,
    /// Opened with `O_DIRECT` where that works.
    pub(super) file: fs::File,
    /// The same file without `O_DIRECT`, for handles that write; `None` when `file` is itself buffered.
    buffered: Option<fs::File>,
    /// What `file` requires while `direct` is set.
    alignment: DirectAlignment,
    /// Whether `file` has `O_DIRECT`. Cleared when the file system turns out to refuse it.
    direct: AtomicBool,
    edges: RwLock<()>,
    /// Set by the first failed sync: the kernel marks the pages that it failed to write as clean, so a second sync
    /// would succeed without them.
    sync_failed: AtomicBool,
    /// What threads do while they read.
    waiting: Arc<Waiting>,
}

impl OpenFile {
    pub(super) fn new(
        name: &str,
        file: fs::File,
        direct: Option<DirectAlignment>,
        buffered: Option<fs::File>,
        waiting: Arc<Waiting>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            file,
            buffered,
            alignment: direct.unwrap_or(DirectAlignment::PAGE),
            direct: AtomicBool::new(direct.is_some()),
            edges: RwLock::new(()),
            sync_failed: AtomicBool::new(false),
            waiting,
        }
    }

    /// The alignment that a read needs; `None` if any is allowed.
    #[inline]
    pub(super) fn alignment(&self) -> Option<DirectAlignment> {
        self.direct.load(Ordering::Relaxed).then_some(self.alignment)
    }

    pub(super) fn read_error(&self, offset: u64, source: Error) -> Error {
        FileError::wrap("read", &self.name, Some(offset), source)
    }

    /// Reads into memory that needs no bounce copy, until `buffer` is full or the file ends. `got` bytes are there
    /// already, from an earlier read that may have been cut short.
    pub(super) fn read_rest(&self, buffer: &mut [u8], offset: u64, mut got: usize) -> Result<usize> {
        while got < buffer.len() {
            if self.alignment().is_some_and(|alignment| !got.is_multiple_of(alignment.offset)) {
                // A direct read stops inside a block only at the end of the file.
                break;
            }
            match self.file.read_at(&mut buffer[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if self.give_up_direct(&error) => {}
                Err(error) => return Err(self.read_error(offset + got as u64, error)),
            }
        }
        Ok(got)
    }

    /// Whether `error` may come from `O_DIRECT` on a file system that accepted the flag at opening and refuses the
    /// reads; if so, the flag is removed and the operation is worth a retry.
    pub(super) fn give_up_direct(&self, error: &Error) -> bool {
        if error.kind() != ErrorKind::InvalidInput || !self.direct.load(Ordering::Relaxed) {
            return false;
        }
        let cleared = super::system::clear_direct(&self.file).is_ok();
        if cleared {
            self.direct.store(false, Ordering::Relaxed);
        }
        cleared
    }

    /// Reads by plain calls, during which the thread sleeps.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        check_range(buffer.len(), offset).map_err(|error| self.read_error(offset, error))?;
        match self.alignment() {
            Some(alignment) if !alignment.allows(buffer.as_ptr(), buffer.len(), offset) => {
                self.read_bounced(buffer, offset, alignment.offset)
            }
            _ => self.read_rest(buffer, offset, 0),
        }
    }

    fn read_bounced(&self, buffer: &mut [u8], offset: u64, block: usize) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let wanted = (buffer.len() - done).min(BOUNCE_BYTES_MAX - block);
            let position = offset + done as u64;
            let span = Span::around(position, wanted, block).ok_or(ErrorKind::InvalidInput)?;
            let mut bounce = AlignedBuffer::with_len(span.len);
            let got = self.read_rest(&mut bounce, span.start, 0)?;
            let usable = span.usable(got, wanted);
            buffer[done..done + usable].copy_from_slice(&bounce[span.skip..span.skip + usable]);
            done += usable;
            if usable < wanted {
                break;
            }
        }
        Ok(done)
    }

    /// Writes whole blocks through the direct file.
    fn write_direct(&self, bytes: &[u8], offset: u64, alignment: DirectAlignment) -> Result<()> {
        if alignment.allows(bytes.as_ptr(), bytes.len(), offset) {
            return self.file.write_all_at(bytes, offset);
        }
        let mut position = offset;
        for chunk in bytes.chunks(BOUNCE_BYTES_MAX) {
            self.file.write_all_at(&AlignedBuffer::from(chunk), position)?;
            position += chunk.len() as u64;
        }
        Ok(())
    }

    /// Writes all of `bytes`.
    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write_checked(bytes, offset)
            .map_err(|error| FileError::wrap("write", &self.name, Some(offset), error))
    }

    /// Writes all of `bytes` through the page cache.
    pub(super) fn write_cached(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let write = || {
            check_range(bytes.len(), offset)?;
            let _alone = self.edges.write().unwrap_or_else(PoisonError::into_inner);
            self.buffered.as_ref().unwrap_or(&self.file).write_all_at(bytes, offset)
        };
        write().map_err(|error| FileError::wrap("write", &self.name, Some(offset), error))
    }

    fn write_checked(&self, bytes: &[u8], offset: u64) -> Result<()> {
        check_range(bytes.len(), offset)?;
        let (Some(alignment), Some(buffered)) = (self.alignment(), &self.buffered) else {
            return self.file.write_all_at(bytes, offset);
        };
        // Whole pages whatever the device allows, because the page cache works in pages.
        let head = (offset.wrapping_neg() % ALIGNMENT as u64) as usize;
        let tail = (offset.wrapping_add(bytes.len() as u64) % ALIGNMENT as u64) as usize;
        if head + tail >= bytes.len() {
            let _alone = self.edges.write().unwrap_or_else(PoisonError::into_inner);
            return buffered.write_all_at(bytes, offset);
        }
        let middle = head..bytes.len() - tail;
        let write_middle = || match self.write_direct(&bytes[middle.clone()], offset + head as u64, alignment)
        {
            Err(error) if self.give_up_direct(&error) => {
                buffered.write_all_at(&bytes[middle.clone()], offset + head as u64)
            }
            result => result,
        };
        if head + tail == 0 {
            let _shared = self.edges.read().unwrap_or_else(PoisonError::into_inner);
            return write_middle();
        }
        let _alone = self.edges.write().unwrap_or_else(PoisonError::into_inner);
        buffered.write_all_at(&bytes[..head], offset)?;
        write_middle()?;
        buffered.write_all_at(&bytes[middle.end..], offset + middle.end as u64)
    }
}

impl OpenFile {
    /// What threads do while they read.
    #[inline]
    pub(super) fn read_wait(&self) -> ReadWait {
        self.waiting.get()
    }

    /// Whether a sync failed; after that nothing of the file may be synced again.
    pub(super) fn has_failed_sync(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }

    pub(super) fn sync(&self) -> Result<()> {
        if self.has_failed_sync() {
            let message =
                format!("an earlier sync of {} failed: what it lost cannot be known, reopen", self.name);
            return Err(Error::other(message));
        }
        self.file.sync_data().map_err(|error| {
            self.sync_failed.store(true, Ordering::Release);
            FileError::wrap("sync", &self.name, None, error)
        })
    }

    pub(super) fn metadata(&self) -> Result<fs::Metadata> {
        self.file.metadata().map_err(|error| FileError::wrap("stat", &self.name, None, error))
    }

    /// Bytes of the device that the file occupies.
    pub(super) fn allocated_bytes(&self) -> Result<u64> {
        /// The unit of `st_blocks`, whatever the file system's own.
        const BLOCK_BYTES: u64 = 512;
        Ok(self.metadata()?.blocks() * BLOCK_BYTES)
    }

    /// Bytes of the file system that this program can still take.
    pub(super) fn available_bytes(&self) -> Result<Option<u64>> {
        super::system::available_bytes(&self.file)
            .map_err(|error| FileError::wrap("stat the file system of", &self.name, None, error))
    }

    pub(super) fn set_len(&self, len: u64) -> Result<()> {
        let _alone = self.edges.write().unwrap_or_else(PoisonError::into_inner);
        self.file.set_len(len).map_err(|error| FileError::wrap("resize", &self.name, Some(len), error))
    }

    pub(super) fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let _alone = self.edges.write().unwrap_or_else(PoisonError::into_inner);
        super::system::punch_hole(&self.file, offset, len)
            .map_err(|error| FileError::wrap("punch a hole into", &self.name, Some(offset), error))
    }
}

/// Refuses ranges that no file can hold, before the system does so with the error code that also means "not aligned".
pub(super) fn check_range(len: usize, offset: u64) -> Result<()> {
    match offset.checked_add(len as u64) {
        Some(end) if end <= i64::MAX as u64 => Ok(()),
        _ => Err(Error::new(
            ErrorKind::InvalidInput,
            format!("{len} bytes there end beyond the largest offset"),
        )),
    }
}
