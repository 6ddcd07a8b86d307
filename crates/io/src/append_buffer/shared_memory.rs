//! Memory written by one thread while others read what it has finished: the unsafe leaf under
//! [`AppendBuffer`](super::AppendBuffer).

use std::io::Result;

use crate::memory::Memory;

/// A block of memory without a lock. The callers' protocol says who may access which bytes, and when.
#[derive(Debug)]
pub(super) struct SharedMemory {
    memory: Memory,
    /// Under the model checker, one tracked cell stands for each byte, so that it sees every access and reports races.
    #[cfg(loom)]
    cells: Vec<loom::cell::UnsafeCell<()>>,
}

impl SharedMemory {
    pub(super) fn zeroed(capacity: usize) -> Result<Self> {
        Ok(Self {
            memory: Memory::zeroed(capacity)?,
            #[cfg(loom)]
            cells: (0..capacity).map(|_| loom::cell::UnsafeCell::new(())).collect(),
        })
    }

    pub(super) fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Copies `bytes` to `start`.
    ///
    /// # Safety
    /// The range is within the capacity, no slice of it has been handed out, and no other thread accesses it until this
    /// write happens before that access.
    pub(super) unsafe fn write(&self, start: usize, bytes: &[u8]) {
        #[cfg(loom)]
        for cell in &self.cells[start..start + bytes.len()] {
            cell.with_mut(|_| ());
        }
        // SAFETY: within the block, and exclusive, by the caller's promise; the source is a borrowed slice, which
        // cannot overlap with memory of which no slice has been handed out.
        unsafe {
            let target = self.memory.pointer().as_ptr().add(start);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len());
        }
    }

    /// The bytes of `start..end`.
    ///
    /// # Safety
    /// `start <= end <= capacity`; all writes to the range happened before this call, and none follows while `self`
    /// lives.
    pub(super) unsafe fn slice(&self, start: usize, end: usize) -> &[u8] {
        #[cfg(loom)]
        for cell in &self.cells[start..end] {
            cell.with(|_| ());
        }
        // SAFETY: within the block and no longer written to, by the caller's promise; initialised since `Memory` is.
        unsafe { std::slice::from_raw_parts(self.memory.pointer().as_ptr().add(start), end - start) }
    }
}
