//! Memory whose lines are flushed after a write, or not.

use std::io;

use super::{HUGE_PAGE_BYTES, LineFlush, Pages, Ring, UNIT_BYTES};

/// Bytes of a line of the processor's cache.
const LINE_BYTES: usize = 64;

/// Memory in huge pages, where the system has some, to compare writes with and without flushes.
#[derive(Debug)]
pub struct FlushedMemory {
    ring: Ring,
    line_flush: LineFlush,
}

impl FlushedMemory {
    /// At least `bytes` of zeros.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let ring = Ring::new(bytes.next_multiple_of(HUGE_PAGE_BYTES), 0, Pages::Huge)?;
        Ok(Self { ring, line_flush: LineFlush::detect() })
    }

    /// Writes bytes from `at` on.
    ///
    /// # Panics
    /// If they extend beyond the memory.
    #[inline(always)]
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        self.ring.copy_in(at, bytes);
    }

    /// Writes the lines of the `len` bytes from `at` on back to memory, in the best way that the processor has, and
    /// waits.
    ///
    /// # Panics
    /// If they extend beyond the memory.
    #[inline(always)]
    pub fn flush(&mut self, at: usize, len: usize) {
        self.flush_by(self.line_flush, at, len);
    }

    /// The same in the way that every processor has, which may be slower and evict the lines.
    ///
    /// # Panics
    /// If they extend beyond the memory.
    #[inline(always)]
    pub fn flush_plainly(&mut self, at: usize, len: usize) {
        self.flush_by(LineFlush::Plain, at, len);
    }

    #[inline(always)]
    fn flush_by(&mut self, line_flush: LineFlush, at: usize, len: usize) {
        for line in at / LINE_BYTES..(at + len).div_ceil(LINE_BYTES) {
            line_flush.flush(self.ring.word(line * LINE_BYTES / UNIT_BYTES));
        }
        line_flush.fence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_leave_what_was_written() {
        let mut memory = FlushedMemory::new(1).unwrap();
        let bytes: Vec<u8> = (0..=255).collect();
        for at in [0, 8, 60, HUGE_PAGE_BYTES - 256] {
            memory.write(at, &bytes);
            memory.flush(at, bytes.len());
            memory.flush_plainly(at, bytes.len());
            assert!(memory.ring.is_equal(at, &bytes));
        }
    }
}
