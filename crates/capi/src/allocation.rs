//! Results in memory of the C library, which the caller frees.

use std::ffi::{c_char, c_void};

use crate::failure::Failure;

/// Memory of a known length that is filled from its beginning. It is aligned for any number.
#[derive(Debug)]
pub struct Allocation {
    start: *mut u8,
    len: usize,
    filled: usize,
}

impl Allocation {
    /// Memory of `len` bytes.
    pub fn new(len: usize) -> Result<Self, Failure> {
        // SAFETY: any length may be asked for; 0 would return NULL on some systems.
        let start: *mut u8 = unsafe { libc::malloc(len.max(1)) }.cast();
        if start.is_null() { Err(Failure::no_memory(len)) } else { Ok(Self { start, len, filled: 0 }) }
    }

    /// Adds bytes behind those that it has, and returns their address.
    pub fn push(&mut self, bytes: &[u8]) -> *const u8 {
        assert!(bytes.len() <= self.len - self.filled, "the memory was measured before");
        // SAFETY: there is room for them behind `filled`, as was just checked.
        let at = unsafe { self.start.add(self.filled) };
        // SAFETY: as above; memory that was just allocated does not overlap with `bytes`.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.filled += bytes.len();
        at
    }

    /// The memory, all of which was filled, for the caller.
    pub fn give(self) -> *mut c_void {
        debug_assert_eq!(self.filled, self.len);
        let start = self.start;
        std::mem::forget(self);
        start.cast()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: it came from malloc, and nobody else has it.
        unsafe { libc::free(self.start.cast()) };
    }
}

/// A copy of `bytes` for the caller.
pub fn copied(bytes: &[u8]) -> Result<*mut c_void, Failure> {
    let mut copy = Allocation::new(bytes.len())?;
    copy.push(bytes);
    Ok(copy.give())
}

/// A copy of `text` for the caller, with a zero behind it.
pub fn text(text: &str) -> Result<*mut c_char, Failure> {
    let mut copy = Allocation::new(text.len() + 1)?;
    copy.push(text.as_bytes());
    copy.push(&[0]);
    Ok(copy.give().cast())
}

/// Frees what `give` returned.
///
/// # Safety
/// `memory` is NULL, or came from [`Allocation::give`] and was not freed.
pub unsafe fn free(memory: *mut c_void) {
    // SAFETY: the caller promises it.
    unsafe { libc::free(memory) };
}
