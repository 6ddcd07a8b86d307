//! [`BlobFile`]: an append-only file of large items.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::{BlobId, Corruption};
use alluvium_io::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use alluvium_io::sync::{Arc, Mutex, MutexGuard, OnceLock};
use alluvium_io::{AlignedBuffer, File, OpenMode, Pipeline};

use super::chunk_encoder::ChunkEncoder;
use super::frame::{BLOCK_BYTES, FILE_HEADER_BYTES, RecordHeader, encode_file_header, file_seed};
use super::reference::Reference;
use super::span::Span;
use super::tail::Tail;
use crate::error::{Error, IoContext, Result};
use crate::file_names::blob_file_name;
use crate::level::Reclaimer;

/// Bytes of records that gather in memory before they are written, unless memory is short.
pub(crate) const GATHER_BYTES: usize = 256 << 10;

/// Blob files by id.
pub(crate) type BlobFiles = BTreeMap<BlobId, Arc<BlobFile>>;

/// A blob file, being written or finished. Shared by the writer and all versions; a file that the manifest no longer
/// names is removed when its last user drops it.
///
/// Appended data never change, so a file may be linked into a checkpoint and read while it grows.
#[derive(Debug)]
pub(crate) struct BlobFile {
    pub id: BlobId,
    pub(crate) file: Arc<dyn File>,
    seed: u64,
    tail: Mutex<Tail>,
    /// Everything before this that belongs to a finished record is in the file.
    pub(super) written: AtomicU64,
    /// End of the last record.
    size: AtomicU64,
    /// Headers before this survive a power cut, and so do the bodies of records that are referred to.
    synced: AtomicU64,
    /// Bytes of records, counted once for each reference to a record: from log indexes, hash sections, sorted tables,
    /// and writers that are about to refer to it. Briefly below zero while a count is moved.
    pub(super) live: AtomicI64,
    /// The part of `live` that is known to be hidden by younger items: an estimate, lost when the database closes.
    pub(super) hidden: AtomicU64,
    /// Number of writers that may still append, or refer to what they appended.
    writers: AtomicU64,
    /// Offsets of records that were read and found sound while the end of the file was unknown.
    known_sound: Mutex<BTreeSet<u64>>,
    is_dirty: AtomicBool,
    /// Why a sync failed. No later sync can restore what the kernel has dropped since then.
    sync_failure: OnceLock<String>,
    is_sealed: AtomicBool,
    is_damaged: AtomicBool,
    is_obsolete: AtomicBool,
    pub(super) header_checked: OnceLock<()>,
    bytes_written: AtomicU64,
    reclaimer: Arc<Reclaimer>,
}

impl BlobFile {
    /// Creates the file of this id. Its name survives a power cut after a sync of the directory.
    pub fn create(reclaimer: &Arc<Reclaimer>, id: BlobId) -> Result<Arc<Self>> {
        let name = blob_file_name(id);
        let file = reclaimer
            .storage()
            .open(&name, OpenMode::Create)
            .context(|| format!("creating blob file {name}"))?;
        let buffer = AlignedBuffer::from(&encode_file_header(id)[..]);
        let size = buffer.len() as u64;
        let blob = Self::new(reclaimer, id, file, Tail { buffer, start: 0 }, size);
        let _ = blob.header_checked.set(());
        Ok(Arc::new(blob))
    }

    /// Opens the file of this id. `sealed_bytes` is its length according to the manifest; `None` for a file that
    /// was being written when the database was last open, whose length the caller determines.
    pub fn open(reclaimer: &Arc<Reclaimer>, id: BlobId, sealed_bytes: Option<u64>) -> Result<Arc<Self>> {
        let name = blob_file_name(id);
        let mode = if sealed_bytes.is_some() { OpenMode::Read } else { OpenMode::Write };
        let file = reclaimer.storage().open(&name, mode).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::MissingFile { file: name.clone() },
            _ => Error::Io { context: format!("opening blob file {name}"), source },
        })?;
        let len = file.len().context(|| format!("measuring {name}"))?;
        let size = sealed_bytes.unwrap_or(len);
        if len < size {
            let expected = format!("a blob file of {size} bytes");
            return Err(Corruption::new(name, len, expected, "its end").into());
        }
        let tail = Tail { buffer: AlignedBuffer::new(), start: size };
        let blob = Self::new(reclaimer, id, file, tail, size);
        blob.written.store(size, Ordering::Relaxed);
        blob.is_sealed.store(sealed_bytes.is_some(), Ordering::Relaxed);
        Ok(Arc::new(blob))
    }

    fn new(reclaimer: &Arc<Reclaimer>, id: BlobId, file: Arc<dyn File>, tail: Tail, size: u64) -> Self {
        Self {
            id,
            file,
            seed: file_seed(id),
            tail: Mutex::new(tail),
            written: AtomicU64::new(0),
            size: AtomicU64::new(size),
            synced: AtomicU64::new(0),
            live: AtomicI64::new(0),
            hidden: AtomicU64::new(0),
            writers: AtomicU64::new(0),
            known_sound: Mutex::default(),
            is_dirty: AtomicBool::new(false),
            sync_failure: OnceLock::new(),
            is_sealed: AtomicBool::new(false),
            is_damaged: AtomicBool::new(false),
            is_obsolete: AtomicBool::new(false),
            header_checked: OnceLock::new(),
            bytes_written: AtomicU64::new(0),
            reclaimer: reclaimer.clone(),
        }
    }

    pub fn name(&self) -> &str {
        self.file.name()
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// End of the last record.
    pub fn size(&self) -> u64 {
        self.size.load(Ordering::Acquire)
    }

    pub(super) fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().expect("no panic while held")
    }

    /// Appends a record of `parts`, key and value. Appended data are written once there are `gather_bytes`.
    pub fn append(&self, header: RecordHeader, parts: [&[u8]; 2], gather_bytes: usize) -> Result<Reference> {
        debug_assert!(!header.is_aligned);
        let mut tail = self.tail();
        let offset = tail.end();
        tail.buffer.extend_from_slice(&header.encode(self.seed, offset));
        let start = tail.start;
        let mut chunks = ChunkEncoder::new(header.content_len());
        for part in parts {
            chunks.push(part, &mut tail.buffer, start, self.seed);
        }
        debug_assert_eq!(tail.end(), header.end(offset));
        let reference = self.appended(header, offset, tail.end());
        if tail.buffer.len() >= gather_bytes {
            // The record is in the tail, and nothing refers to it.
            let forget = |_: &Error| self.add_live(-(reference.stored_bytes() as i64));
            self.write_out(&mut tail, false).inspect_err(forget)?;
        }
        Ok(reference)
    }

    /// Appends the header of an aligned record and leaves room for its body, which the caller writes by
    /// [`BlobFile::write_body`].
    pub fn reserve(&self, header: RecordHeader) -> Result<Reference> {
        debug_assert!(header.is_aligned);
        let mut tail = self.tail();
        let offset = tail.end();
        let end = header.end(offset);
        // Whether or not the body is ever written, the file is as long as its records: a sync declares them durable.
        self.file.set_len(end).context(|| format!("extending blob file {}", self.name()))?;
        let len_before = tail.buffer.len();
        tail.buffer.extend_from_slice(&header.encode(self.seed, offset));
        // The header is written before the body, so that the chain of headers has no gap in the synced part.
        if let Err(error) = self.write_out(&mut tail, true) {
            // Nothing was appended: the next record begins here.
            tail.buffer.truncate(len_before);
            return Err(error);
        }
        tail.start = end;
        tail.buffer.clear();
        self.written.store(end, Ordering::Release);
        Ok(self.appended(header, offset, end))
    }

    fn appended(&self, header: RecordHeader, offset: u64, end: u64) -> Reference {
        let RecordHeader { key_len, value_len, .. } = header;
        let reference = Reference { file: self.id, body: header.body(offset), key_len, value_len };
        self.size.store(end, Ordering::Release);
        self.add_live(reference.stored_bytes() as i64);
        reference
    }

    /// Writes a part of the body of an aligned record, in whole blocks.
    pub fn write_body(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(bytes, offset).context(|| format!("writing blob file {}", self.name()))?;
        self.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.is_dirty.store(true, Ordering::Release);
        Ok(())
    }

    /// Writes the whole blocks of the tail. With `edge` also writes the last, partly filled block, which then stays in
    /// memory.
    ///
    /// Rewriting the last block is safe under torn writes: its old content is a prefix of the new.
    pub(super) fn write_out(&self, tail: &mut Tail, edge: bool) -> Result<()> {
        let block = BLOCK_BYTES as usize;
        let len = tail.buffer.len();
        let whole = len / block * block;
        let written = self.written.load(Ordering::Relaxed);
        if tail.end() <= written || (whole == 0 && !edge) {
            return Ok(());
        }
        if edge {
            tail.buffer.pad_to(block);
        }
        let bytes = if edge { tail.buffer.len() } else { whole };
        if let Err(error) = self.write_body(&tail.buffer[..bytes], tail.start) {
            // The disk may have room again later: the next record must not begin after the padding.
            tail.buffer.truncate(len);
            return Err(error);
        }
        let rest = AlignedBuffer::from(&tail.buffer[whole..len]);
        self.written.store(tail.start + if edge { len } else { whole } as u64, Ordering::Release);
        tail.start += whole as u64;
        tail.buffer = rest;
        Ok(())
    }

    /// Makes everything appended so far survive a power cut. Callers take turns: see `Blobs::sync`.
    ///
    /// # Errors
    /// After a failed sync each later one fails, also in a thread that calls this before the failure is recorded.
    /// Otherwise the log would be synced with references to lost records.
    pub fn sync(&self) -> Result<()> {
        if let Some(reason) = self.sync_failure.get() {
            return Err(Error::Failed { reason: reason.clone() });
        }
        let end = {
            let mut tail = self.tail();
            self.write_out(&mut tail, true)?;
            tail.end()
        };
        if self.is_dirty.swap(false, Ordering::AcqRel) {
            let outcome = self.file.sync().context(|| format!("syncing blob file {}", self.name()));
            outcome.inspect_err(|error| drop(self.sync_failure.set(error.to_string())))?;
        }
        self.synced.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    /// The end of the last sync.
    pub fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Cuts off everything after `size`, the end of the last reachable record, and makes the rest survive a power cut.
    /// For a file that was being written when the database was last open.
    pub fn cut(&self, size: u64) -> Result<()> {
        let context = || format!("cutting blob file {}", self.name());
        self.file.set_len(size).context(context)?;
        self.file.sync().context(context)?;
        self.limit(size);
        Ok(())
    }

    /// Makes `size` the end of the last record.
    pub fn limit(&self, size: u64) {
        self.size.store(size, Ordering::Release);
        self.written.store(size, Ordering::Release);
        self.tail().start = size;
    }

    /// Whether nothing was ever written to the file, not even its header: the disk was full.
    pub fn is_empty(&self) -> bool {
        self.size() < FILE_HEADER_BYTES as u64
    }

    /// Declares that nothing will be appended any more and everything is synced.
    pub fn seal(&self) {
        let mut tail = self.tail();
        tail.start = tail.end();
        tail.buffer = AlignedBuffer::new();
        let _keeps_its_descriptors_if_failed = self.file.end_writing();
        self.is_sealed.store(true, Ordering::Release);
        self.known_sound.lock().expect("no panic while held").clear();
    }

    /// Remembers that the record whose body is at this offset was read and found sound.
    pub fn note_sound(&self, body: u64) {
        self.known_sound.lock().expect("no panic while held").insert(body);
    }

    /// Whether the record was found sound since the file was opened to find its end.
    pub fn is_known_sound(&self, body: u64) -> bool {
        self.known_sound.lock().expect("no panic while held").contains(&body)
    }

    pub fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Acquire)
    }

    /// Reads `from..to` into `buffer`, in whole blocks. Returns the position in the buffer at which these bytes begin.
    pub fn read(&self, from: u64, to: u64, buffer: &mut AlignedBuffer) -> Result<usize> {
        self.check_header()?;
        let size = self.size();
        if to > size {
            let expected = format!("{} bytes of a record", to - from);
            return Err(Corruption::new(self.name(), from, expected, format!("the end at {size}")).into());
        }
        let start = from / BLOCK_BYTES * BLOCK_BYTES;
        let skip = (from - start) as usize;
        buffer.resize_unspecified((to.next_multiple_of(BLOCK_BYTES) - start) as usize);
        let mut wanted = to;
        if to > self.written.load(Ordering::Acquire) {
            let tail = self.tail();
            // Writing moves the front of the tail into the file, never back.
            if to > tail.start {
                let first = from.max(tail.start);
                let bytes = &tail.buffer[(first - tail.start) as usize..(to - tail.start) as usize];
                let at = (first - start) as usize;
                buffer[at..at + bytes.len()].copy_from_slice(bytes);
                wanted = first;
            }
        }
        if wanted > from {
            let end = if wanted == to { buffer.len() } else { (wanted - start) as usize };
            let read = self
                .file
                .read_at(&mut buffer[..end], start)
                .context(|| format!("reading blob file {}", self.name()))?;
            if start + (read as u64) < wanted {
                let expected = format!("{} bytes of a record", to - from);
                let found = format!("the end after {read}");
                return Err(Corruption::new(self.name(), start, expected, found).into());
            }
        }
        Ok(skip)
    }

    /// The blocks of `from..to`, for reads in flight together. `None` if a part is still in memory, or missing, or if
    /// the file is not a blob file: [`BlobFile::read`] then reads it or returns the error.
    pub(super) fn span(&self, from: u64, to: u64) -> Option<Span<'_>> {
        if to > self.written.load(Ordering::Acquire) || to > self.size() || self.check_header().is_err() {
            return None;
        }
        Some(Span::of(&*self.file, from..to))
    }

    /// A pipeline for reads of the file.
    pub(super) fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.reclaimer.storage().pipeline(depth)
    }

    /// Registers a writer: the file is not sealed before the writer is done.
    pub fn enter(&self) {
        self.writers.fetch_add(1, Ordering::AcqRel);
    }

    /// Unregisters the writer of a [`BlobFile::enter`].
    pub fn leave(&self) {
        self.writers.fetch_sub(1, Ordering::AcqRel);
    }

    pub fn has_writers(&self) -> bool {
        self.writers.load(Ordering::Acquire) > 0
    }

    /// Declares that records cannot be read, so that the file cannot be emptied.
    pub fn set_damaged(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Declares that the manifest no longer names the file.
    pub fn set_obsolete(&self) {
        self.is_obsolete.store(true, Ordering::Release);
    }

    /// Bytes of memory of the tail.
    pub fn memory_bytes(&self) -> u64 {
        self.tail().buffer.capacity() as u64
    }

    /// Bytes written since the database was opened.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }
}

impl Drop for BlobFile {
    fn drop(&mut self) {
        if self.is_obsolete.load(Ordering::Acquire) {
            self.reclaimer.remove(blob_file_name(self.id));
        }
    }
}
