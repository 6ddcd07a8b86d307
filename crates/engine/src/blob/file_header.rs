//! Checks a blob file's header.

use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::Ordering;

use super::file::BlobFile;
use super::frame::{BLOCK_BYTES, FILE_HEADER_BYTES, check_file_header};
use crate::error::{IoContext, Result};

impl BlobFile {
    /// Checks the file's header, once.
    pub fn check_header(&self) -> Result<()> {
        if self.header_checked.get().is_some() {
            return Ok(());
        }
        self.read_header()?;
        let _ = self.header_checked.set(());
        Ok(())
    }

    /// Checks the current header of the file. The header of a new file may still be in memory.
    pub fn read_header(&self) -> Result<()> {
        if self.header_checked.get().is_some() && self.written.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let mut block = AlignedBuffer::zeroed(BLOCK_BYTES as usize);
        let read =
            self.file.read_at(&mut block, 0).context(|| format!("reading blob file {}", self.name()))?;
        check_file_header(&block[..read.min(FILE_HEADER_BYTES)], self.id, self.name())
    }
}
