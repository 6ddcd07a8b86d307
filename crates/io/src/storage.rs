//! The two traits behind which all file access happens, so that the simulation runs the production code.

use std::any::Any;
use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::sync::Arc;

use crate::ReadWait;
use crate::error::FileError;
use crate::pipeline::{Immediate, Pipeline};

/// How [`Storage::open`] opens a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading only.
    Read,
    /// An existing file, for reading and writing.
    Write,
    /// A new file, for reading and writing; fails when the name is taken.
    Create,
}

/// One directory of files, flat, named by plain names without separators.
///
/// What survives a power cut: the content of a file after [`File::sync`]; a name (created, renamed, removed) after
/// [`Storage::sync_directory`]. Nothing else is promised, and [`crate::SimulatedStorage`] takes away everything else.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Opens the file `name`.
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn File>>;

    /// Removes the file `name`. Handles that are open keep working until they are dropped.
    fn remove(&self, name: &str) -> Result<()>;

    /// Gives the file `from` the name `to`, replacing a file of that name in one step.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// The names of all files, in no particular order.
    fn list(&self) -> Result<Vec<String>>;

    /// Makes all creations, renames and removals so far survive a power cut.
    fn sync_directory(&self) -> Result<()>;

    /// Locks the directory against other processes (and other openings in this one) through the file `name`, until the
    /// returned guard is dropped. An error of kind `WouldBlock` names the holder, as far as it is known.
    fn lock(&self, name: &str) -> Result<Box<dyn DirectoryLock>>;

    /// Prevents others from taking [`Storage::lock`] until the returned guard is dropped, and changes nothing. Any
    /// number of callers can hold such a guard at a time. Returns `None` if the directory was never locked, or if
    /// the system does not distinguish readers from writers. Fails like [`Storage::lock`].
    fn lock_shared(&self, name: &str) -> Result<Option<Box<dyn DirectoryLock>>> {
        let _ = name;
        Ok(None)
    }

    /// Performs all reads with as many in flight as there are requests (up to a limit of the implementation), and
    /// stores the outcome of each in its `result`. Order of completion is not defined.
    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        for request in requests {
            request.result = request.file.read_at(request.buffer, request.offset);
        }
    }

    /// A stream of reads and writes with up to `depth` in flight, for callers that have the next operation before all
    /// earlier ones are done: see [`Pipeline`]. The default performs each operation when it is submitted.
    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        let _ = depth;
        Box::new(Immediate::default())
    }

    /// Sets what threads do from now on while [`File::read_at`] and [`Storage::read_batch`] read, including files that
    /// are open already. They sleep until this is called. Pipelines, which serve background work, always sleep; a
    /// storage that has no choice ignores this.
    fn set_read_wait(&self, wait: ReadWait) {
        let _ = wait;
    }

    /// Bytes of the device that this program can still take for files here; `None` if the storage cannot tell. Another
    /// program may take them first.
    fn available_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Links a file of `source` under the same name here, so that both share its bytes. Returns `false` if that is
    /// impossible (another file system, another kind of storage) and the caller must copy. The name survives a power
    /// cut after [`Storage::sync_directory`].
    fn link_from(&self, source: &dyn Storage, name: &str) -> Result<bool> {
        let _ = (source, name);
        Ok(false)
    }

    /// The storage's own type, by which another of its kind recognises it; `None` if nothing needs it.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }

    /// How this storage reaches the device, for `stats`: for example `direct io_uring`, `direct pread`, `buffered`.
    fn describe(&self) -> String;
}

/// An open file. All methods take `&self` and may be called from many threads.
pub trait File: Send + Sync + fmt::Debug {
    /// Fills `buffer` from `offset`; returns how many bytes there were before the end of the file.
    ///
    /// Any offset, length and memory is correct. Fast, without a bounce copy under direct I/O, when all three are
    /// multiples of [`crate::ALIGNMENT`]; use [`crate::AlignedBuffer`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes all of `bytes` at `offset`, extending the file as needed. The same alignment rule as for reading; an
    /// unaligned write under direct I/O costs a read of the blocks at its edges.
    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()>;

    /// Like [`File::write_at`], through the system's cache where there is one: returns as soon as the bytes survive the
    /// death of the process. Faster for small pieces, of any alignment.
    fn write_cached(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write_at(bytes, offset)
    }

    /// Makes the content and length written so far survive a power cut. After an error the state of the file is
    /// unknown: the caller must not retry and must not trust unsynced data again. The system's cache may show data that
    /// the device lacks and that no later sync writes, also to the next process that opens the file.
    fn sync(&self) -> Result<()>;

    /// Declares that nothing is written or synced through this handle any more: resources needed only for that, for
    /// example descriptors, may be released. Reads still work.
    fn end_writing(&self) -> Result<()> {
        Ok(())
    }

    /// Length in bytes.
    fn len(&self) -> Result<u64>;

    /// Whether the file has no bytes.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts or extends (with zeros) to `len` bytes.
    fn set_len(&self, len: u64) -> Result<()>;

    /// Gives the space of `offset..offset + len` back to the file system; the range reads as zeros afterwards. The
    /// length stays. Silently does nothing where holes are not supported.
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()>;

    /// Bytes of the device that the file occupies (holes excluded).
    fn allocated_bytes(&self) -> Result<u64>;

    /// Bytes of the device that this program can still take where the file is, like [`Storage::available_bytes`].
    fn available_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Fails like a write at `offset` without room if fewer than `bytes` are available, so that what is about to be
    /// written leaves that many to others. Succeeds if the storage cannot tell.
    fn check_available(&self, offset: u64, bytes: u64) -> Result<()> {
        match self.available_bytes() {
            Ok(Some(available)) if available < bytes => {
                let reason = format!(
                    "{available} bytes are available, and this takes {bytes} with those kept for the log"
                );
                let error = Error::new(ErrorKind::StorageFull, reason);
                Err(FileError::wrap("write", self.name(), Some(offset), error))
            }
            _ => Ok(()),
        }
    }

    /// Number of names of the bytes: above one after [`Storage::link_from`].
    fn link_count(&self) -> Result<u64> {
        Ok(1)
    }

    /// The name it was opened under.
    fn name(&self) -> &str;

    /// The handle's own type, by which a storage recognises its files in a batch; `None` if nothing needs it.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// Holds the lock of a directory; dropping it releases the lock.
pub trait DirectoryLock: Send + Sync + fmt::Debug {}

/// One read of a batch: see [`Storage::read_batch`].
#[derive(Debug)]
pub struct ReadRequest<'a> {
    /// The file to read; it was opened by the storage that performs the batch.
    pub file: &'a dyn File,
    /// Where to read.
    pub offset: u64,
    /// Where the bytes go; aligned for speed, as in [`File::read_at`].
    pub buffer: &'a mut [u8],
    /// The outcome, as [`File::read_at`] would return it.
    pub result: Result<usize>,
}
