//! Room for one value while it is copied out of a log.

use std::cell::Cell;

const SHORT_BYTES: usize = 128;
/// A thread's buffer that grew beyond this is not kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A buffer on the stack, and for longer values one that the thread keeps.
pub(crate) struct Scratch {
    short: [u8; SHORT_BYTES],
    long: Vec<u8>,
    len: usize,
}

impl Scratch {
    #[inline(always)]
    pub fn new() -> Self {
        Self { short: [0; SHORT_BYTES], long: Vec::new(), len: 0 }
    }

    /// Makes it `len` bytes long, of any content.
    #[inline(always)]
    pub fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        self.len = len;
        if len <= SHORT_BYTES {
            return &mut self.short[..len];
        }
        if self.long.is_empty() {
            self.long = KEPT.take();
        }
        if self.long.len() < len {
            self.long.resize(len, 0);
        }
        &mut self.long[..len]
    }

    /// What was written last.
    #[inline(always)]
    pub fn bytes(&self) -> &[u8] {
        if self.len <= SHORT_BYTES { &self.short[..self.len] } else { &self.long[..self.len] }
    }
}

impl Drop for Scratch {
    #[inline(always)]
    fn drop(&mut self) {
        if !self.long.is_empty() && self.long.len() <= KEPT_BYTES_MAX {
            KEPT.set(std::mem::take(&mut self.long));
        }
    }
}
