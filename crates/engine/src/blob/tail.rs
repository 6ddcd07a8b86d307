//! [`Tail`]: the end of a blob file in memory.

use alluvium_io::AlignedBuffer;

/// The end of the file that is not written yet. It begins at a multiple of `BLOCK_BYTES`.
#[derive(Debug)]
pub(super) struct Tail {
    pub buffer: AlignedBuffer,
    pub start: u64,
}

impl Tail {
    pub fn end(&self) -> u64 {
        self.start + self.buffer.len() as u64
    }
}
