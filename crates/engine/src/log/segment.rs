//! One log file and its content in memory.
//!
//! The content stays in memory until the segment is converted (`docs/decisions/0002`): gets of fresh items, checks of
//! tag matches and the conversion itself read no file. The file is written behind, in large aligned pieces.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::{Corruption, SegmentId};
use alluvium_index::prefetch_bytes;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use alluvium_io::{AlignedBuffer, AppendBuffer, Appender, File, Storage};

use super::file_users::{FileUser, FileUsers};
use super::header::SegmentHeader;
use super::indexing::Indexing;
use super::recycler::{Recycler, SPACE_KEPT_BYTES, SPACE_TRIMMED_BYTES_MIN};
use super::retained::RetainedSegment;
use crate::error::{Error, IoContext, Result};
use crate::failure::{FailureClass, class_of};
use crate::item::{EncodedItem, Item};

/// Bytes of the header block; also the unit in which the file is written.
pub(crate) const BLOCK: u64 = 4096;
/// Maximum step by which written space is prepared, so that syncs meet no new extents (NOTES: log space).
const PREPARE_BYTES_MAX: u64 = 4 << 20;
const PREPARE_BYTES_MIN: u64 = 256 << 10;

const _: () = assert!(SPACE_KEPT_BYTES >= PREPARE_BYTES_MIN && SPACE_TRIMMED_BYTES_MIN >= PREPARE_BYTES_MAX);

/// Number of bytes compared at a time.
const CHECK_BYTES: usize = 256 << 10;

/// A log file and its content in memory. Shared by the writer and all versions that read it. When the last of them
/// drops a converted segment, the recycler gets its file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub id: SegmentId,
    pub seed: u64,
    pub header: SegmentHeader,
    pub(super) file: Arc<dyn File>,
    buffer: AppendBuffer,
    pub(super) write: Mutex<WriteState>,
    /// Bytes of content in the file. Grows, until a sync fails.
    pub(super) written: AtomicU64,
    pub(super) has_failed_sync: Mutex<bool>,
    recycler: Arc<Recycler>,
    converted: AtomicBool,
    /// Whether a store over it has grown, because its items live for a short time. Set when it is frozen.
    is_grown: AtomicBool,
    /// Whether the file is kept for readers of the log.
    retained: AtomicBool,
    /// Whether the file is kept because records in it are linked to chains.
    is_chained: AtomicBool,
    file_users: Arc<FileUsers>,
    pub(crate) indexing: Indexing,
}

/// How a log file is filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filling {
    /// In whole blocks.
    Plain,
    /// In whole blocks, after its written space was extended in large steps: for frequent syncs.
    Prepared,
    /// To the last byte, through the system's cache: for writers that wait for each write.
    Cached,
}

#[derive(Debug)]
pub(super) struct WriteState {
    /// End of the file's written space, whether content or zeros.
    extent: u64,
    edge: AlignedBuffer,
    /// Whether nothing is written any more: the database is closed, and the file may belong to another opening.
    is_ended: bool,
    /// Whether the file has no segment any more.
    is_released: bool,
}

impl WriteState {
    fn new(extent: u64) -> Self {
        Self { extent, edge: AlignedBuffer::zeroed(BLOCK as usize), is_ended: false, is_released: false }
    }
}

impl Segment {
    /// A new segment in a recycled file, or in a new file whose name survives a power cut from here on.
    pub fn create(
        storage: &dyn Storage,
        recycler: &Arc<Recycler>,
        header: SegmentHeader,
        capacity: u64,
    ) -> Result<(Arc<Self>, Appender)> {
        let SegmentHeader { id, seed, .. } = header;
        let file = match recycler.take() {
            Some(file) => file,
            None => {
                let name = recycler.fresh_name(id);
                let file = storage
                    .open(&name, alluvium_io::OpenMode::Create)
                    .context(|| format!("creating log file {name}"))?;
                storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
                file
            }
        };
        // If this fails, the file is left to the next attempt.
        let prepared = file.len().context(|| format!("measuring {}", file.name())).and_then(|extent| {
            let buffer = AppendBuffer::new(capacity as usize);
            Ok((extent, buffer.context(|| "mapping memory for a log segment".to_owned())?))
        });
        let (extent, (mut appender, buffer)) = prepared.inspect_err(|_| recycler.add(file.clone()))?;
        appender.append(&header.encode()).expect("a segment holds its header");
        let segment = Self {
            id,
            seed,
            header,
            file,
            buffer,
            write: Mutex::new(WriteState::new(extent)),
            written: AtomicU64::new(0),
            has_failed_sync: Mutex::default(),
            recycler: recycler.clone(),
            converted: AtomicBool::new(false),
            is_grown: AtomicBool::new(false),
            retained: AtomicBool::new(false),
            is_chained: AtomicBool::new(false),
            file_users: Arc::default(),
            indexing: Indexing::default(),
        };
        Ok((Arc::new(segment), appender))
    }

    /// A segment found by recovery. Its sound content is `content`, header included.
    pub fn recovered(
        file: Arc<dyn File>,
        header: SegmentHeader,
        content: &[u8],
        recycler: &Arc<Recycler>,
    ) -> Result<Arc<Self>> {
        let (mut appender, buffer) = AppendBuffer::new(content.len().max(BLOCK as usize))
            .context(|| "mapping memory for a log segment".to_owned())?;
        appender.append(content).expect("the capacity is the length");
        let SegmentHeader { id, seed, .. } = header;
        Ok(Arc::new(Self {
            id,
            seed,
            header,
            file,
            buffer,
            write: Mutex::new(WriteState::new(0)),
            written: AtomicU64::new(content.len() as u64),
            has_failed_sync: Mutex::default(),
            recycler: recycler.clone(),
            converted: AtomicBool::new(false),
            is_grown: AtomicBool::new(false),
            retained: AtomicBool::new(false),
            is_chained: AtomicBool::new(false),
            file_users: Arc::default(),
            indexing: Indexing::default(),
        }))
    }

    pub fn file(&self) -> Arc<dyn File> {
        self.file.clone()
    }

    /// Who needs the file when the segment has been converted.
    pub fn file_users(&self) -> Arc<FileUsers> {
        self.file_users.clone()
    }

    pub fn name(&self) -> &str {
        self.file.name()
    }

    /// Bytes of content, header included.
    pub fn published(&self) -> u64 {
        self.buffer.published()
    }

    /// Maximum bytes of content.
    pub fn capacity(&self) -> u64 {
        self.buffer.capacity()
    }

    /// The content of `range`, if it is published.
    pub fn slice(&self, range: Range<u64>) -> Option<&[u8]> {
        self.buffer.slice(range)
    }

    /// The item whose encoding starts at `offset`. Offsets come from the index, which gets them after the record is
    /// published; so a failure means memory corruption, and is reported as such.
    #[inline]
    pub fn item_at(&self, offset: u32) -> Result<Item<'_>> {
        self.encoded_item_at(offset).map(|encoded| encoded.item)
    }

    /// Like [`Segment::item_at`], with the item's encoding.
    #[inline]
    pub fn encoded_item_at(&self, offset: u32) -> Result<EncodedItem<'_>> {
        let offset = u64::from(offset);
        self.buffer.slice(offset..self.buffer.published()).and_then(EncodedItem::decode).ok_or_else(|| {
            Error::Corruption(Corruption::new(self.name(), offset, "a log item", "undecodable bytes"))
        })
    }

    /// Starts loading the item at `offset`, of about `len` bytes, into the cache.
    #[inline]
    pub fn prefetch(&self, offset: u32, len: usize) {
        prefetch_bytes(self.buffer.bytes(), offset as usize, len);
    }

    /// Writes content that the file lacks: only whole blocks, or if `edge` also the last, partly filled one. Returns
    /// the bytes written.
    ///
    /// Rewriting the last block is safe under torn writes: its old content is a prefix of the new.
    pub fn write_out(&self, edge: bool, filling: Filling) -> Result<u64> {
        let mut state = self.write.lock().expect("no panic while held");
        let published = self.published();
        let written = self.written.load(Ordering::Relaxed);
        let start = written / BLOCK * BLOCK;
        let whole_end = published / BLOCK * BLOCK;
        let end = if edge { published } else { whole_end };
        if end <= written || state.is_released {
            return Ok(0);
        }
        if state.is_ended {
            return Err(Error::Closed);
        }
        let context = || format!("writing log file {}", self.name());
        if filling == Filling::Cached {
            let content = self.buffer.slice(written..end).expect("published");
            self.file.write_cached(content, written).context(context)?;
            self.written.store(end, Ordering::Release);
            return Ok(end - written);
        }
        let mut bytes = 0;
        if filling == Filling::Prepared {
            // If there is no room for the zeros, there may still be room for the content.
            bytes += self
                .prepare(&mut state, end.next_multiple_of(BLOCK))
                .or_else(|error| if class_of(&error) == FailureClass::Full { Ok(0) } else { Err(error) })?;
        }
        if whole_end > start {
            let content = self.buffer.slice(start..whole_end).expect("published");
            self.file.write_at(content, start).context(context)?;
            bytes += whole_end - start;
        }
        if edge && published > whole_end {
            let tail = self.buffer.slice(whole_end..published).expect("published");
            state.edge.fill(0);
            state.edge[..tail.len()].copy_from_slice(tail);
            self.file.write_at(&state.edge, whole_end).context(context)?;
            bytes += BLOCK;
        }
        state.extent = state.extent.max(end.next_multiple_of(BLOCK));
        self.written.store(end, Ordering::Release);
        Ok(bytes)
    }

    fn prepare(&self, state: &mut WriteState, needed: u64) -> Result<u64> {
        let mut bytes = 0;
        // A small segment means that memory is short, and the zeros take some.
        let step_max = (self.capacity() / 8 / BLOCK * BLOCK).clamp(PREPARE_BYTES_MIN, PREPARE_BYTES_MAX);
        let end = self.capacity().next_multiple_of(BLOCK).max(needed);
        while state.extent < needed {
            let step = state.extent.clamp(PREPARE_BYTES_MIN, step_max).min(end - state.extent);
            let zeros = AlignedBuffer::zeroed(step as usize);
            let context = || format!("extending log file {}", self.name());
            self.file.write_at(&zeros, state.extent).context(context)?;
            state.extent += step;
            bytes += step;
        }
        Ok(bytes)
    }

    /// Ends writing to the file; waits for a write under way.
    pub fn end_writing(&self) {
        self.write.lock().expect("no panic while held").is_ended = true;
    }

    /// Notes that a store over the segment has grown.
    pub fn set_grown(&self) {
        self.is_grown.store(true, Ordering::Release);
    }

    pub fn is_grown(&self) -> bool {
        self.is_grown.load(Ordering::Acquire)
    }

    /// Cuts off the space behind the content, if that is much. It is prepared again when it is needed.
    pub fn trim(&self) {
        let mut state = self.write.lock().expect("no panic while held");
        let end = self.written.load(Ordering::Relaxed).next_multiple_of(BLOCK) + SPACE_KEPT_BYTES;
        let is_in_use = !state.is_ended && !state.is_released;
        // If this fails, the space is used later.
        if is_in_use && state.extent >= end + SPACE_TRIMMED_BYTES_MIN && self.file.set_len(end).is_ok() {
            state.extent = end;
        }
    }

    /// Compares the bytes that were written to the file with those in memory; returns how many were compared.
    ///
    /// # Errors
    /// [`Error::Corruption`] if they differ.
    pub fn check_file(&self) -> Result<u64> {
        let written = self.written.load(Ordering::Acquire);
        let mut buffer = AlignedBuffer::zeroed(CHECK_BYTES);
        let mut at = 0;
        while at < written {
            let len = (written - at).min(CHECK_BYTES as u64);
            let read = self.file.read_at(&mut buffer, at).context(|| format!("reading {}", self.name()))?;
            let expected = self.buffer.slice(at..at + len).expect("what is written is published");
            let found = &buffer[..read.min(len as usize)];
            let same = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
            if same < expected.len() {
                if self.write.lock().expect("no panic while held").is_released {
                    return Ok(0);
                }
                let expected = "the bytes that were written to the log";
                return Err(Corruption::new(self.name(), at + same as u64, expected, "others").into());
            }
            at += len;
        }
        Ok(written)
    }

    /// Declares that the log does not need the segment any more, durably, so that a repair does not find it. The file
    /// may be recycled once nobody uses the segment.
    pub(super) fn release(&self, release: impl Fn(&dyn File) -> Result<()>) -> Result<()> {
        let mut state = self.write.lock().expect("no panic while held");
        if !state.is_ended && !state.is_released {
            state.is_released = true;
            release(&*self.file)?;
            self.converted.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Writes all content to the file, durably, and leaves the file to readers of the log. Returns the bytes that were
    /// written.
    pub(super) fn retain(&self) -> Result<u64> {
        let written = self.write_out(true, Filling::Plain)?;
        self.sync()?;
        self.file_users.add(FileUser::Readers);
        self.retained.store(true, Ordering::Release);
        Ok(written)
    }

    /// Writes all content to the file, durably, and leaves the file to keyspaces with records in it that are linked to
    /// chains. Returns the bytes that were written.
    pub(super) fn keep_chained(&self) -> Result<u64> {
        let written = self.write_out(true, Filling::Plain)?;
        self.sync()?;
        self.file_users.add(FileUser::Chains);
        self.is_chained.store(true, Ordering::Release);
        Ok(written)
    }

    /// Whether the file was left to chained keyspaces.
    pub fn is_chained(&self) -> bool {
        self.is_chained.load(Ordering::Acquire)
    }

    /// The segment for readers of the log, if it was left to them.
    pub fn retained(&self) -> Option<RetainedSegment> {
        let segment = || RetainedSegment {
            header: self.header,
            file: self.file.clone(),
            bytes: self.published(),
            users: self.file_users.clone(),
        };
        self.retained.load(Ordering::Acquire).then(segment)
    }

    /// Bytes of memory that the content takes.
    pub fn memory_bytes(&self) -> u64 {
        self.buffer.memory_bytes()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let is_kept = self.retained.load(Ordering::Acquire) || self.is_chained();
        if self.converted.load(Ordering::Acquire) && !is_kept {
            self.recycler.add(self.file.clone());
        }
    }
}

/// Whether `name` is that of a log file.
pub(crate) fn is_file_name(name: &str) -> bool {
    name.starts_with("log-")
}
