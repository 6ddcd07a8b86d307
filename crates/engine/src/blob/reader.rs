//! [`RecordReader`]: the content of one record, chunk by chunk.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_io::AlignedBuffer;

use super::file::BlobFile;
use super::frame::{CHECKSUM_BYTES, CHUNK_BYTES, body_bytes, chunk_content};
use super::reference::Reference;
use crate::error::Result;

/// Most chunks of one read.
const READ_CHUNKS: u64 = 16;

/// Reads a record's content in pieces of up to a mebibyte: one sequential read for most records. Each chunk is checked
/// before a byte of it is handed out.
#[derive(Debug)]
pub(crate) struct RecordReader {
    file: Arc<BlobFile>,
    reference: Reference,
    /// Offset of the next chunk to read.
    position: u64,
    end: u64,
    /// Chunks read at a time.
    chunks: u64,
    buffer: AlignedBuffer,
    /// What of the buffer is read, but not checked: whole chunks.
    ready: Range<usize>,
    /// What of the last chunk was not handed out by [`RecordReader::fill`].
    content: Range<usize>,
}

impl RecordReader {
    pub fn new(file: Arc<BlobFile>, reference: Reference) -> Self {
        let end = reference.body + body_bytes(reference.content_len());
        let (buffer, position) = (AlignedBuffer::new(), reference.body);
        Self { file, reference, position, end, chunks: READ_CHUNKS, buffer, ready: 0..0, content: 0..0 }
    }

    /// With reads of at most so many chunks: for callers who may want the first one only, or take their time.
    pub fn in_pieces(self, chunks: u64) -> Self {
        Self { chunks: chunks.min(self.chunks), ..self }
    }

    /// Content of the next chunk; `None` behind the last.
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

    /// Fills the front of `out` with the content that comes next; returns how much it was, 0 at the end only.
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

    /// The key, which comes first.
    pub fn read_key(&mut self) -> Result<Vec<u8>> {
        let mut key = vec![0; self.reference.key_len as usize];
        let mut filled = 0;
        while filled < key.len() {
            filled += self.fill(&mut key[filled..])?;
        }
        Ok(key)
    }

    /// All content: the key and the value.
    pub fn read_all(mut self) -> Result<(Vec<u8>, Vec<u8>)> {
        let (mut key, mut value) = (Vec::new(), Vec::with_capacity(self.reference.value_len as usize));
        let key_len = self.reference.key_len as usize;
        debug_assert!(self.content.is_empty());
        while let Some(content) = self.next_chunk()? {
            let (of_key, of_value) = content.split_at(content.len().min(key_len - key.len()));
            key.extend_from_slice(of_key);
            value.extend_from_slice(of_value);
        }
        Ok((key, value))
    }
}
