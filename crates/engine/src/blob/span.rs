//! [`Span`]: the blocks of a file that contain certain bytes.

use std::ops::Range;

use alluvium_io::{AlignedBuffer, File, ReadRequest};

use super::frame::BLOCK_BYTES;

/// Whole blocks of a file, as direct I/O reads them, and the bytes that are wanted of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'f> {
    pub file: &'f dyn File,
    /// Offset of the first block.
    pub offset: u64,
    /// Bytes of all blocks.
    pub len: usize,
    /// Position of the wanted bytes in the blocks.
    pub skip: usize,
    /// Number of bytes that a read must return to contain the wanted ones.
    pub needed: usize,
}

impl<'f> Span<'f> {
    /// The blocks of `wanted`.
    pub fn of(file: &'f dyn File, wanted: Range<u64>) -> Self {
        let offset = wanted.start / BLOCK_BYTES * BLOCK_BYTES;
        Self {
            file,
            offset,
            len: (wanted.end.next_multiple_of(BLOCK_BYTES) - offset) as usize,
            skip: (wanted.start - offset) as usize,
            needed: (wanted.end - offset) as usize,
        }
    }

    /// The positions of the wanted bytes in the blocks.
    pub fn wanted(&self) -> Range<usize> {
        self.skip..self.needed
    }

    /// A read of the blocks into `buffer`.
    pub fn request<'b>(&self, buffer: &'b mut AlignedBuffer) -> ReadRequest<'b>
    where
        'f: 'b,
    {
        buffer.resize_unspecified(self.len);
        ReadRequest { file: self.file, offset: self.offset, buffer, result: Ok(0) }
    }
}
