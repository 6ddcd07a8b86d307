//! [`ChunkEncoder`]: divides content into checksummed chunks.

use alluvium_base::checksum::checksum64;
use alluvium_io::AlignedBuffer;

use super::frame::{CHECKSUM_BYTES, CHUNK_BYTES};

/// Divides the content of a record into chunks.
#[derive(Debug)]
pub(crate) struct ChunkEncoder {
    content_left: u64,
    /// Position in the buffer of the open chunk.
    chunk: Option<usize>,
}

impl ChunkEncoder {
    /// For a record of `content_len` bytes of content.
    pub fn new(content_len: u64) -> Self {
        Self { content_left: content_len, chunk: None }
    }

    /// Appends content to `buffer`, whose first byte is at `start` of a file with this seed. An open chunk stays in the
    /// buffer until it is full or the record complete.
    pub fn push(&mut self, mut content: &[u8], buffer: &mut AlignedBuffer, start: u64, seed: u64) {
        while !content.is_empty() {
            let chunk = *self.chunk.get_or_insert_with(|| {
                buffer.extend_from_slice(&[0; CHECKSUM_BYTES]);
                buffer.len() - CHECKSUM_BYTES
            });
            let room = CHUNK_BYTES - (buffer.len() - chunk);
            let (now, later) = content.split_at(content.len().min(room));
            buffer.extend_from_slice(now);
            self.content_left -= now.len() as u64;
            if now.len() == room || self.content_left == 0 {
                let checksum = checksum64(&buffer[chunk + CHECKSUM_BYTES..], seed ^ (start + chunk as u64));
                buffer[chunk..chunk + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
                self.chunk = None;
            }
            content = later;
        }
    }

    /// Declares that the first bytes of the buffer were written and removed from it.
    pub fn written(&mut self, bytes: usize) {
        if let Some(chunk) = &mut self.chunk {
            *chunk -= bytes;
        }
    }

    /// Whether no chunk is open, so that the buffer may be written and emptied.
    pub fn is_between_chunks(&self) -> bool {
        self.chunk.is_none()
    }

    /// Bytes of content that are still to come.
    pub fn content_left(&self) -> u64 {
        self.content_left
    }
}
