//! Writes the bytes of a new table file to storage.

use std::sync::Arc;

use alluvium_io::{AlignedBuffer, Completed, File, OpenMode, Operation, Pipeline, Storage};

use crate::error::{Error, Result};
use crate::page::PAGE_BYTES;

/// Bytes of a write, unless memory is short: large enough for sequential work of the device.
pub const WRITE_BYTES: usize = 1 << 20;
/// Writes in flight while the next buffer fills.
const IN_FLIGHT_MAX: usize = 2;
/// Buffers that a writer of a table holds.
pub const WRITES_MAX: usize = IN_FLIGHT_MAX + 1;

/// How a table file is written.
#[derive(Clone, Copy, Debug)]
pub struct OutputOptions {
    /// Bytes of a write, whole pages.
    pub write_bytes: usize,
    /// Bytes of the device that must be available before each write, so that the log has room.
    pub leave_bytes: u64,
}

impl Default for OutputOptions {
    fn default() -> Self {
        Self { write_bytes: WRITE_BYTES, leave_bytes: 0 }
    }
}

/// A file written front to back through aligned buffers: one is filled while others are being written. Every write
/// except the last has the same size, at a multiple of that size.
#[derive(Debug)]
pub(super) struct Output {
    file: Arc<dyn File>,
    name: String,
    /// Bytes of the device to be left available.
    leave_bytes: u64,
    pipeline: Box<dyn Pipeline>,
    /// Bytes of a write, whole pages.
    write_bytes: usize,
    /// Never full between calls.
    buffer: AlignedBuffer,
    /// Offset in the file of the buffer's first byte.
    buffer_offset: u64,
}

impl Output {
    /// Creates the file `name`, which must not exist.
    ///
    /// If the bytes of a write are not whole pages.
    pub fn create(storage: &dyn Storage, name: &str, options: OutputOptions) -> Result<Self> {
        let OutputOptions { write_bytes, leave_bytes } = options;
        assert!(write_bytes > 0 && write_bytes.is_multiple_of(PAGE_BYTES), "writes of {write_bytes} bytes");
        let file = storage.open(name, OpenMode::Create).map_err(Error::io("create", name))?;
        let buffer = AlignedBuffer::with_capacity(write_bytes);
        let pipeline = storage.pipeline(IN_FLIGHT_MAX);
        Ok(Self { file, name: name.to_owned(), leave_bytes, pipeline, write_bytes, buffer, buffer_offset: 0 })
    }

    /// Bytes appended so far.
    #[inline]
    pub fn position(&self) -> u64 {
        self.buffer_offset + self.buffer.len() as u64
    }

    /// Appends a page, which `fill` writes completely. `fill` receives the page's number in the file. The position must
    /// be at a page boundary.
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
            let (now, later) = bytes.split_at(bytes.len().min(self.write_bytes - self.buffer.len()));
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

    /// Writes the buffer and waits for all writes. The caller syncs the file.
    pub fn end(mut self) -> Result<Arc<dyn File>> {
        self.write()?;
        while let Some(written) = self.pipeline.wait() {
            self.check(written)?;
        }
        Ok(self.file)
    }

    #[inline]
    fn write_when_full(&mut self) -> Result<()> {
        if self.buffer.len() == self.write_bytes { self.write() } else { Ok(()) }
    }

    /// Starts to write the buffer, and waits for an earlier write if too many are in flight.
    #[cold]
    fn write(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut next = if self.pipeline.pending() < IN_FLIGHT_MAX {
            AlignedBuffer::with_capacity(self.write_bytes)
        } else {
            let written = self.pipeline.wait().expect("operations are pending");
            self.check(written)?
        };
        next.clear();
        if self.leave_bytes > 0 {
            let in_flight = (self.pipeline.pending() * self.write_bytes + self.buffer.len()) as u64;
            let checked = self.file.check_available(self.buffer_offset, self.leave_bytes + in_flight);
            checked.map_err(Error::io("write", &self.name))?;
        }
        let full = std::mem::replace(&mut self.buffer, next);
        let (offset, len) = (self.buffer_offset, full.len() as u64);
        self.pipeline.submit(Operation::Write, &*self.file, offset, full, offset);
        self.buffer_offset += len;
        Ok(())
    }

    /// Returns the buffer of a write that succeeded.
    fn check(&self, written: Completed) -> Result<AlignedBuffer> {
        written.result.map_err(Error::io("write", &self.name))?;
        Ok(written.buffer)
    }
}
