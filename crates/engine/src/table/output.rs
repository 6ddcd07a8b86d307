//! The bytes of a new table file on their way to storage.

use std::sync::Arc;

use alluvium_io::{AlignedBuffer, Completed, File, OpenMode, Operation, Pipeline, Storage};

use super::error::{Error, Result};
use super::page::PAGE_BYTES;

/// Bytes of a write: large enough that the device sees sequential work.
const BUFFER_BYTES: usize = 1 << 20;
/// Writes in flight while the next buffer fills.
const IN_FLIGHT_MAX: usize = 2;
/// Memory that a writer of a table holds in buffers.
pub(crate) const OUTPUT_BYTES_MAX: usize = BUFFER_BYTES * (IN_FLIGHT_MAX + 1);

const _: () = assert!(BUFFER_BYTES.is_multiple_of(PAGE_BYTES));

/// A file written front to back through aligned buffers, one filling while others are on their way to the device.
/// Every write but the last is 1 MiB at a multiple of 1 MiB.
#[derive(Debug)]
pub(super) struct Output {
    file: Arc<dyn File>,
    name: String,
    pipeline: Box<dyn Pipeline>,
    /// Never full between calls.
    buffer: AlignedBuffer,
    /// Where the buffer's first byte will lie in the file.
    buffer_offset: u64,
}

impl Output {
    /// Creates the file `name`, which must not exist.
    pub fn create(storage: &dyn Storage, name: &str) -> Result<Self> {
        let file = storage.open(name, OpenMode::Create).map_err(Error::io("create", name))?;
        let buffer = AlignedBuffer::with_capacity(BUFFER_BYTES);
        let pipeline = storage.pipeline(IN_FLIGHT_MAX);
        Ok(Self { file, name: name.to_owned(), pipeline, buffer, buffer_offset: 0 })
    }

    /// Bytes appended so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Appends a page that `fill` writes in full, given its number in the file. The position is at a page's start.
    pub fn append_page<R>(&mut self, fill: impl FnOnce(u64, &mut [u8]) -> R) -> Result<R> {
        let start = self.buffer.len();
        debug_assert!(start.is_multiple_of(PAGE_BYTES));
        let number = self.position() / PAGE_BYTES as u64;
        self.buffer.resize_unspecified(start + PAGE_BYTES);
        let result = fill(number, &mut self.buffer[start..]);
        self.write_when_full()?;
        Ok(result)
    }

    /// Appends `bytes`.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(BUFFER_BYTES - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            self.write_when_full()?;
            bytes = later;
        }
        Ok(())
    }

    /// Appends zeros until `reserved` more bytes end a page.
    pub fn pad_page_but(&mut self, reserved: usize) -> Result<()> {
        let used = (self.buffer.len() + reserved) % PAGE_BYTES;
        let short = if used == 0 { 0 } else { PAGE_BYTES - used };
        self.append(&[0; PAGE_BYTES][..short])
    }

    /// Writes what is buffered and waits for all writes. The file is to be synced.
    pub fn end(mut self) -> Result<Arc<dyn File>> {
        self.write()?;
        while let Some(written) = self.pipeline.wait() {
            self.check(written)?;
        }
        Ok(self.file)
    }

    #[inline]
    fn write_when_full(&mut self) -> Result<()> {
        if self.buffer.len() == BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    /// Starts the write of what is buffered, and waits for an earlier one when too many are in flight.
    #[cold]
    fn write(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut next = if self.pipeline.pending() < IN_FLIGHT_MAX {
            AlignedBuffer::with_capacity(BUFFER_BYTES)
        } else {
            let written = self.pipeline.wait().expect("operations are pending");
            self.check(written)?
        };
        next.clear();
        let full = std::mem::replace(&mut self.buffer, next);
        let (offset, len) = (self.buffer_offset, full.len() as u64);
        self.pipeline.submit(Operation::Write, &*self.file, offset, full, offset);
        self.buffer_offset += len;
        Ok(())
    }

    /// The buffer of a write that succeeded.
    fn check(&self, written: Completed) -> Result<AlignedBuffer> {
        written.result.map_err(Error::io("write", &self.name))?;
        Ok(written.buffer)
    }
}
