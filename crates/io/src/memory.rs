//! Zeroed, aligned memory: the only place where this crate allocates what a device reads into or writes from.
//!
//! Small blocks come from the allocator. Larger ones are anonymous mappings: populated on first touch, and returned to
//! the system when they are freed, whatever the allocator would keep. From 2 MiB on they are aligned to 2 MiB, and ask
//! for huge pages (a dependent read costs 262 ns in a 2 MiB page and 435 ns in a 4 KiB page on the machine of the
//! targets). Every byte is initialised from the start, so that the safe surface is that of a slice.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

use crate::ALIGNMENT;

/// Blocks from this size on are mappings of their own.
pub(crate) const MAPPED_BYTES_MIN: usize = 64 << 10;
/// Mappings from this size on ask for huge pages, and are populated in units of this size: that of a huge page on
/// x86-64, and on aarch64 with 4 KiB pages.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An owned block of initialised memory, aligned to [`ALIGNMENT`].
///
/// Invariants: `pointer` is valid for reads and writes of `capacity` initialised bytes, is a multiple of
/// [`ALIGNMENT`], and belongs to this value alone; it dangles only when `capacity` is 0.
#[derive(Debug)]
pub(crate) struct Memory {
    pointer: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the block belongs to this value alone, and memory is not tied to a thread.
unsafe impl Send for Memory {}
// SAFETY: through `&Memory` the safe surface only reads; `pointer()` callers carry their own proof.
unsafe impl Sync for Memory {}

impl Memory {
    /// No memory at all; costs nothing.
    pub(crate) const fn empty() -> Self {
        Self { pointer: NonNull::<Page>::dangling().cast(), capacity: 0 }
    }

    /// A block of `bytes` zeros, rounded up to a multiple of [`ALIGNMENT`].
    ///
    /// # Errors
    /// `OutOfMemory` when the system refuses, `InvalidInput` when the size is beyond the address space.
    pub(crate) fn zeroed(bytes: usize) -> io::Result<Self> {
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} bytes of memory"));
        let capacity = bytes.checked_next_multiple_of(ALIGNMENT).ok_or_else(too_large)?;
        if capacity == 0 {
            return Ok(Self::empty());
        }
        if is_mapped(capacity) {
            return mapped::map(capacity).map(|pointer| Self { pointer, capacity });
        }
        let layout = layout(capacity).ok_or_else(too_large)?;
        // SAFETY: the size of `layout` is not zero: checked above.
        let pointer = unsafe { alloc_zeroed(layout) };
        match NonNull::new(pointer) {
            Some(pointer) => Ok(Self { pointer, capacity }),
            None => {
                Err(io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {capacity} bytes")))
            }
        }
    }

    /// Size of the block in bytes, a multiple of [`ALIGNMENT`].
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Start of the block, for callers that share it under their own protocol.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    /// The whole block.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: valid and initialised by the invariants of the type; the borrow of `self` forbids writers.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.capacity) }
    }

    /// The whole block, for writing.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: valid and initialised by the invariants of the type; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.capacity) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.capacity == 0 {
            return;
        }
        if is_mapped(self.capacity) {
            // SAFETY: `zeroed` mapped exactly this range, and nobody else owns it.
            unsafe { mapped::unmap(self.pointer, self.capacity) }
        } else if let Some(layout) = layout(self.capacity) {
            // SAFETY: `zeroed` allocated the block with this same layout.
            unsafe { dealloc(self.pointer.as_ptr(), layout) }
        }
    }
}

/// Gives the dangling pointer of an empty block the required alignment.
#[repr(align(4096))]
struct Page;

const _: () = assert!(std::mem::align_of::<Page>() == ALIGNMENT);

fn layout(capacity: usize) -> Option<Layout> {
    Layout::from_size_align(capacity, ALIGNMENT).ok()
}

/// Depends on the capacity alone, so that `drop` need not know how the block was made.
fn is_mapped(capacity: usize) -> bool {
    cfg!(all(unix, not(miri))) && capacity >= MAPPED_BYTES_MIN
}

#[cfg(all(unix, not(miri)))]
mod mapped {
    use std::io;
    use std::ptr::NonNull;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

    use super::HUGE_PAGE_BYTES;

    /// Maps `capacity` zero bytes, a multiple of 4 KiB: from the huge page size on at a multiple of it.
    pub(super) fn map(capacity: usize) -> io::Result<NonNull<u8>> {
        if capacity >= HUGE_PAGE_BYTES { map_huge(capacity) } else { map_pages(capacity) }
    }

    fn map_pages(bytes: usize) -> io::Result<NonNull<u8>> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        NonNull::new(base.cast::<u8>()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn map_huge(capacity: usize) -> io::Result<NonNull<u8>> {
        // Mapped with room to spare and trimmed to an aligned start: without alignment the kernel cannot use huge pages
        // at the edges.
        let padded = capacity.checked_add(HUGE_PAGE_BYTES).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{capacity} bytes of memory"))
        })?;
        let base = map_pages(padded)?.as_ptr();
        let head = base.align_offset(HUGE_PAGE_BYTES);
        let start = base.wrapping_add(head);
        let tail = padded - head - capacity;
        // SAFETY: both ranges are in the mapping just made, are whole pages (the kernel returns page-aligned addresses
        // and `capacity` is a multiple of 4 KiB; where system pages are larger the call fails and the spare range stays
        // mapped, untouched), and nothing points into them.
        unsafe {
            if head > 0 {
                let _ = munmap(base.cast(), head);
            }
            if tail > 0 {
                let _ = munmap(start.wrapping_add(capacity).cast(), tail);
            }
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::mm::{Advice, madvise};
            // SAFETY: the range is the mapping just made; the advice does not change its content. A kernel without
            // huge pages refuses, which costs speed only.
            let _ = unsafe { madvise(start.cast(), capacity, Advice::LinuxHugepage) };
        }
        NonNull::new(start).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    /// Unmaps what [`map`] returned.
    ///
    /// # Safety
    /// `start` and `capacity` are those of one earlier `map`, and nothing uses the range any more.
    pub(super) unsafe fn unmap(start: NonNull<u8>, capacity: usize) {
        // SAFETY: the caller's promise. Unmapping whole pages of an own mapping fails only when the kernel is out of
        // mapping slots; leaking the range is then the one safe answer.
        let _ = unsafe { munmap(start.as_ptr().cast(), capacity) };
    }
}

#[cfg(not(all(unix, not(miri))))]
mod mapped {
    use std::io;
    use std::ptr::NonNull;

    pub(super) fn map(_capacity: usize) -> io::Result<NonNull<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// # Safety
    /// None: never called, since [`map`] never succeeds.
    pub(super) unsafe fn unmap(_start: NonNull<u8>, _capacity: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_any_size_are_aligned_zeroed_and_writable() {
        for bytes in [
            0,
            1,
            4096,
            4097,
            MAPPED_BYTES_MIN - 1,
            MAPPED_BYTES_MIN,
            HUGE_PAGE_BYTES,
            HUGE_PAGE_BYTES * 2 + 1,
        ] {
            let mut memory = Memory::zeroed(bytes).unwrap();
            assert_eq!(memory.pointer().as_ptr().align_offset(ALIGNMENT), 0);
            assert_eq!(memory.capacity(), bytes.next_multiple_of(ALIGNMENT));
            assert!(memory.bytes().iter().all(|&byte| byte == 0));
            memory.bytes_mut().fill(7);
            assert!(memory.bytes().iter().all(|&byte| byte == 7));
        }
    }

    #[test]
    fn an_impossible_size_is_an_error() {
        assert!(Memory::zeroed(usize::MAX).is_err());
        assert!(Memory::zeroed(usize::MAX / 2).is_err());
    }
}
