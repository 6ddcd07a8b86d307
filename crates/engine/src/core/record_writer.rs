//! [`RecordWriter`]: writes a large item to a blob file.

use std::sync::Arc;

use alluvium_base::KeyspaceId;
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::Ordering;

use super::{HeldMemory, Shared};
use crate::blob::chunk_encoder::ChunkEncoder;
use crate::blob::frame::CHUNK_BYTES;
use crate::blob::{BlobFile, RecordHeader, Reference};
use crate::error::Result;
use crate::table::Loan;

/// Bytes of an aligned record that are written at once, unless memory is short.
pub(crate) const PIECE_BYTES: usize = 16 * CHUNK_BYTES;

/// Receives the content of one record, the key and then the value, whose lengths are known from the start.
///
/// Short records are gathered and appended in one piece. For a long record room is reserved, and it is written in
/// parallel with those of other writers, in pieces of at most a mebibyte. A large value is therefore never completely
/// in memory, and a slow source does not hold up other writers.
#[derive(Debug)]
pub(crate) struct RecordWriter<'a> {
    shared: &'a Shared,
    header: RecordHeader,
    body: Body,
    /// Bytes of an aligned record that are written at once.
    piece_bytes: usize,
    /// Bytes of shorter records that gather in their file before they are written.
    gather_bytes: usize,
    _held: Option<(Option<Loan>, HeldMemory<'a>)>,
}

#[derive(Debug)]
enum Body {
    Gathered(Vec<u8>),
    Aligned { pending: PendingRecord, chunks: ChunkEncoder, buffer: AlignedBuffer, offset: u64 },
}

/// A record that is complete in its file, but to which nothing refers yet. If it is dropped before
/// [`PendingRecord::commit`], it is garbage.
#[derive(Debug)]
pub(crate) struct PendingRecord {
    file: Arc<BlobFile>,
    reference: Reference,
    encoded: Vec<u8>,
    is_committed: bool,
}

impl<'a> RecordWriter<'a> {
    /// Begins a record. The lengths must be within the limits of keys and values.
    pub fn begin(shared: &'a Shared, keyspace: KeyspaceId, key_len: usize, value_len: usize) -> Result<Self> {
        let content_len = key_len + value_len;
        let budget = shared.memory.budget();
        let (piece_bytes, gather_bytes) = (budget.blob_piece_bytes, budget.blob_gather_bytes);
        let is_aligned = content_len >= shared.settings.blob_aligned_bytes_min
            || content_len as u64 >= budget.blob_whole_bytes;
        let header =
            RecordHeader { keyspace, key_len: key_len as u32, value_len: value_len as u32, is_aligned };
        let mut held = None;
        let body = if is_aligned {
            let pending = PendingRecord::append(shared, |file| file.reserve(header))?;
            let offset = pending.reference.body;
            let buffer = AlignedBuffer::with_capacity(piece_bytes.min(content_len) + 2 * CHUNK_BYTES);
            let bytes = buffer.capacity() as u64;
            held = Some((shared.memory.lend(bytes), shared.hold_buffers(bytes)));
            Body::Aligned { pending, chunks: ChunkEncoder::new(header.content_len()), buffer, offset }
        } else {
            Body::Gathered(Vec::with_capacity(content_len))
        };
        Ok(Self { shared, header, body, piece_bytes, gather_bytes, _held: held })
    }

    /// Writes a whole record.
    pub fn write_record(
        shared: &'a Shared,
        keyspace: KeyspaceId,
        key: &[u8],
        value: &[u8],
    ) -> Result<PendingRecord> {
        let mut writer = Self::begin(shared, keyspace, key.len(), value.len())?;
        if !writer.header.is_aligned {
            return PendingRecord::append(shared, |file| {
                file.append(writer.header, [key, value], writer.gather_bytes)
            });
        }
        writer.write(key)?;
        writer.write(value)?;
        writer.finish()
    }

    /// Appends content.
    pub fn write(&mut self, content: &[u8]) -> Result<()> {
        match &mut self.body {
            Body::Gathered(bytes) => bytes.extend_from_slice(content),
            Body::Aligned { pending, chunks, buffer, offset } => {
                for piece in content.chunks(CHUNK_BYTES) {
                    chunks.push(piece, buffer, *offset, pending.file.seed());
                    // A chunk may be open after full ones, so only the bytes before it are written.
                    if buffer.len() >= self.piece_bytes {
                        let full = buffer.len() / CHUNK_BYTES * CHUNK_BYTES;
                        write_full(pending, chunks, buffer, offset, full)
                            .map_err(|error| self.shared.note_failure(error))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the record, of which all content was written.
    pub fn finish(self) -> Result<PendingRecord> {
        match self.body {
            Body::Gathered(bytes) => {
                debug_assert_eq!(bytes.len() as u64, self.header.content_len());
                let append = |file: &BlobFile| file.append(self.header, [&bytes, &[]], self.gather_bytes);
                PendingRecord::append(self.shared, append)
            }
            Body::Aligned { pending, chunks, mut buffer, offset } => {
                debug_assert!(chunks.content_left() == 0 && chunks.is_between_chunks());
                buffer.pad_to(crate::blob::frame::BLOCK_BYTES as usize);
                pending.file.write_body(&buffer, offset).map_err(|error| self.shared.note_failure(error))?;
                Ok(pending)
            }
        }
    }
}

/// Writes the first `full` bytes of the buffer, whole chunks, and keeps the rest.
fn write_full(
    pending: &PendingRecord,
    chunks: &mut ChunkEncoder,
    buffer: &mut AlignedBuffer,
    offset: &mut u64,
    full: usize,
) -> Result<()> {
    pending.file.write_body(&buffer[..full], *offset)?;
    let rest = buffer.len() - full;
    buffer.copy_within(full.., 0);
    buffer.truncate(rest);
    chunks.written(full);
    *offset += full as u64;
    Ok(())
}

impl PendingRecord {
    fn append(shared: &Shared, append: impl FnOnce(&BlobFile) -> Result<Reference>) -> Result<Self> {
        let file = shared.blobs.enter_current(shared)?;
        // A failed write leaves the file's end unknown, unless only space was missing.
        let appended = append(&file).map_err(|error| {
            file.leave();
            shared.note_failure(error)
        });
        let reference = appended?;
        Ok(Self { file, reference, encoded: reference.encode(), is_committed: false })
    }

    /// The reference to the record, as the value of an item.
    pub fn reference_bytes(&self) -> &[u8] {
        &self.encoded
    }

    /// The reference to the record.
    pub fn reference(&self) -> Reference {
        self.reference
    }

    /// The file that contains the record.
    pub fn file(&self) -> &Arc<BlobFile> {
        &self.file
    }

    /// Bytes that the record takes in the file.
    pub fn stored_bytes(&self) -> u64 {
        self.reference.stored_bytes()
    }

    /// Declares that an index entry now refers to the record.
    pub fn commit(mut self) {
        self.is_committed = true;
    }

    /// Counts the record as a copy of another one, for the statistics.
    pub fn count_as_relocated(&self, shared: &Shared) {
        shared.blobs.bytes_relocated.fetch_add(self.reference.stored_bytes(), Ordering::Relaxed);
    }
}

impl Drop for PendingRecord {
    fn drop(&mut self) {
        if !self.is_committed {
            self.file.add_live(-(self.reference.stored_bytes() as i64));
        }
        self.file.leave();
    }
}
