//! [`RecordReader`]: reads the content of one record, chunk by chunk.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_io::{AlignedBuffer, Storage};

use super::file::BlobFile;
use super::frame::{CHECKSUM_BYTES, CHUNK_BYTES, body_bytes, chunk_content};
use super::reference::Reference;
use crate::error::Result;

/// Maximum chunks of one read.
const READ_CHUNKS: u64 = 16;

/// Reads a record's content in pieces of up to a mebibyte: one sequential read for most records. Each chunk is checked
/// before any of its bytes is returned.
#[derive(Debug)]
pub(crate) struct RecordReader {
    pub(super) file: Arc<BlobFile>,
    reference: Reference,
    /// Offset of the next chunk to read.
    pub(super) position: u64,
    pub(super) end: u64,
    /// Maximum chunks in memory.
    pub(super) chunks: u64,
    buffer: AlignedBuffer,
    /// The part of the buffer that is read, but not checked: whole chunks.
    ready: Range<usize>,
    /// The part of the last chunk that [`RecordReader::fill`] has not returned yet.
    content: Range<usize>,
}

impl RecordReader {
    pub fn new(file: Arc<BlobFile>, reference: Reference) -> Self {
        let end = reference.body + body_bytes(reference.content_len());
        let (buffer, position) = (AlignedBuffer::new(), reference.body);
        Self { file, reference, position, end, chunks: READ_CHUNKS, buffer, ready: 0..0, content: 0..0 }
    }

    /// Limits reads to `chunks` chunks: for callers that may need only the first one, or are slow.
    pub fn in_pieces(self, chunks: u64) -> Self {
        Self { chunks: chunks.min(self.chunks), ..self }
    }

    /// Reads the first piece of each of `readers` together. Pieces that cannot be read this way are read later, and
    /// fail then.
    pub fn read_first_pieces(storage: &dyn Storage, readers: &mut [Self]) {
        let mut requests = Vec::with_capacity(readers.len());
        let mut pieces = Vec::with_capacity(readers.len());
        for reader in readers {
            let Self { file, position, end, chunks, buffer, ready, .. } = reader;
            let to = (*end).min(*position + *chunks * CHUNK_BYTES as u64);
            if ready.start == ready.end
                && to > *position
                && let Some(span) = file.span(*position, to)
            {
                requests.push(span.request(buffer));
                pieces.push((position, ready, to, span.wanted()));
            }
        }
        storage.read_batch(&mut requests);
        for (request, (position, ready, to, wanted)) in requests.into_iter().zip(pieces) {
            if request.result.is_ok_and(|read| read >= wanted.end) {
                *ready = wanted;
                *position = to;
            }
        }
    }

    /// Content of the next chunk, or `None` after the last.
    pub fn next_chunk(&mut self) -> Result<Option<&[u8]>> {
        if self.ready.is_empty() {
            if self.position == self.end {
                return Ok(None);
            }
            let to = self.end.min(self.position + self.chunks * CHUNK_BYTES as u64);
            let skip = self.file.read(self.position, to, &mut self.buffer)?;
            self.ready = skip..skip + (to - self.position) as usize;
            self.position = to;
        }
        self.next_read_chunk()
    }

    /// Takes chunks that were read into `buffer` in place of those in front of `end`; leaves its own buffer, whose
    /// chunks have all been used, in exchange.
    pub(super) fn exchange(&mut self, buffer: &mut AlignedBuffer, chunks: Range<usize>, end: u64) {
        debug_assert!(self.ready.is_empty());
        std::mem::swap(&mut self.buffer, buffer);
        (self.ready, self.position) = (chunks, end);
    }

    /// Content of the next chunk that is in memory; `None` if there is none.
    pub(super) fn next_read_chunk(&mut self) -> Result<Option<&[u8]>> {
        if self.ready.is_empty() {
            return Ok(None);
        }
        let chunk = self.ready.start..self.ready.end.min(self.ready.start + CHUNK_BYTES);
        let offset = self.position - self.ready.len() as u64;
        self.ready.start = chunk.end;
        if chunk_content(&self.buffer[chunk.clone()], self.file.seed(), offset).is_none() {
            self.ready = 0..0;
            self.position = self.end;
            let expected = "a chunk whose checksum matches";
            return Err(Corruption::new(self.file.name(), offset, expected, "another checksum").into());
        }
        Ok(Some(&self.buffer[chunk.start + CHECKSUM_BYTES..chunk.end]))
    }

    /// Fills the front of `out` with the next content. Returns the number of bytes, which is 0 only at the end.
    pub fn fill(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.content.is_empty() && !out.is_empty() {
            let Some(len) = self.next_chunk()?.map(<[u8]>::len) else { return Ok(0) };
            self.content = self.ready.start - len..self.ready.start;
        }
        let len = out.len().min(self.content.len());
        out[..len].copy_from_slice(&self.buffer[self.content.start..self.content.start + len]);
        self.content.start += len;
        Ok(len)
    }

    /// Reads the key, which is at the front.
    pub fn read_key(&mut self) -> Result<Vec<u8>> {
        let mut key = vec![0; self.reference.key_len as usize];
        let mut filled = 0;
        while filled < key.len() {
            filled += self.fill(&mut key[filled..])?;
        }
        Ok(key)
    }

    /// Reads all content: the key and the value. Reads ahead if it is long.
    pub fn read_all(mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        debug_assert!(self.content.is_empty());
        let mut content = KeyAndValue::of(&self.reference);
        while let Some(chunk) = self.next_read_chunk()? {
            content.push(chunk);
        }
        if self.is_worth_reading_ahead() {
            self.read_ahead(&mut content)?;
        }
        while let Some(chunk) = self.next_chunk()? {
            content.push(chunk);
        }
        Ok((content.key, content.value))
    }
}

/// The content of a record, as far as it was read.
#[derive(Debug)]
pub(super) struct KeyAndValue {
    key_len: usize,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl KeyAndValue {
    fn of(reference: &Reference) -> Self {
        let value = Vec::with_capacity(reference.value_len as usize);
        Self { key_len: reference.key_len as usize, key: Vec::new(), value }
    }

    /// Appends the content of the next chunk.
    pub fn push(&mut self, chunk: &[u8]) {
        let (of_key, of_value) = chunk.split_at(chunk.len().min(self.key_len - self.key.len()));
        self.key.extend_from_slice(of_key);
        self.value.extend_from_slice(of_value);
    }
}
