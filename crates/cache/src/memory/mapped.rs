//! Memory mappings: anonymous memory with huge pages, a ring whose beginning is mapped again after its end, and files.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, mmap_anonymous, msync, munmap};

use super::{HUGE_PAGE_BYTES, PAGE_BYTES};

/// The pages of a mapping of 2 MiB or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Huge pages from the beginning: for memory that will soon be touched everywhere.
    Huge,
    /// Small pages, until [`use_huge_pages`](Mapping::use_huge_pages) is called: for memory that fills from one end.
    AsUsed,
}

/// Parts of the system's library that `rustix` does not declare.
mod collapse {
    use std::ffi::{c_int, c_void};

    /// `MADV_COLLAPSE`: converts small pages to huge ones at once (Linux 6.1).
    pub const ADVICE: c_int = 25;

    // SAFETY: this is the declaration of madvise(2) in the C library of Linux, which every program there links.
    unsafe extern "C" {
        pub fn madvise(address: *mut c_void, len: usize, advice: c_int) -> c_int;
    }
}

/// An address range that belongs to this value: zeroed, readable and writable memory, `len` bytes from `start`.
///
/// Invariants: this value mapped the range `start..start + len`, whose address and size are multiples of a page and
/// which stays mapped until the drop. The last `window` bytes are the same memory as the first ones.
#[derive(Debug)]
pub(super) struct Mapping {
    /// The reserved range, which may begin before `start` because of alignment.
    reserved: NonNull<c_void>,
    reserved_len: usize,
    start: NonNull<u8>,
    len: usize,
    window: usize,
}

// SAFETY: the range belongs to this value alone, and memory is not tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: this type reads and writes nothing itself; callers that take `start` share the memory as atomics.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` zeroed bytes.
    pub fn anonymous(len: usize, pages: Pages) -> io::Result<Self> {
        Self::ring(len, 0, pages)
    }

    /// `capacity` zeroed bytes, after which the first `window` of them are mapped once more.
    ///
    /// The window comes from a memory file, which Linux in common configurations gives no huge pages; everything else
    /// is anonymous and has them. So the window should be small.
    ///
    /// # Errors
    /// The system's error if it refuses the memory; `InvalidInput` for sizes beyond the address space.
    pub fn ring(capacity: usize, window: usize, pages: Pages) -> io::Result<Self> {
        let mapping = Self::reserve(capacity, window)?;
        let advice = match pages {
            Pages::Huge if capacity >= HUGE_PAGE_BYTES => Advice::LinuxHugepage,
            // Also where the system gives huge pages by default.
            _ => Advice::LinuxNoHugepage,
        };
        // With some advice in any case, so that the system does not join it with memory that was retired.
        mapping.advise(0, capacity, advice);
        if window > 0 {
            mapping.share_window(capacity, window)?;
        }
        Ok(mapping)
    }

    /// The first `len` bytes of a file, a multiple of a page, shared with everybody who maps it. The space of the file
    /// has been allocated, since an access to a page for which there is none ends the process.
    ///
    /// # Errors
    /// The system's error if it refuses the memory; `InvalidInput` for sizes beyond the address space.
    pub fn file(file: &File, len: usize) -> io::Result<Self> {
        let mapping = Self::reserve(len, 0)?;
        // SAFETY: the range is the reserved one, which belongs to this value, and there are no references into it yet.
        unsafe {
            mmap(
                mapping.start.as_ptr().cast(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::FIXED,
                file.as_fd(),
                0,
            )?;
        }
        // Files in memory have huge pages where the system is set up for it; others ignore the advice.
        mapping.advise(0, len, Advice::LinuxHugepage);
        Ok(mapping)
    }

    /// Writes the pages of a mapped file that contain the bytes `offset..offset + len` to its device, and waits.
    ///
    /// # Errors
    /// The system's error if a page could not be written.
    pub fn sync(&self, offset: usize, len: usize) -> io::Result<()> {
        let first = offset / PAGE_BYTES * PAGE_BYTES;
        let end = (offset + len).next_multiple_of(PAGE_BYTES).min(self.len);
        if first < end {
            let address = self.start.as_ptr().wrapping_add(first).cast();
            // SAFETY: whole pages of this mapping, whose content the call does not change.
            unsafe { msync(address, end - first, MsyncFlags::SYNC)? };
        }
        Ok(())
    }

    /// A range of addresses for `capacity` bytes and a window, mapped as anonymous memory.
    fn reserve(capacity: usize, window: usize) -> io::Result<Self> {
        debug_assert!(capacity.is_multiple_of(PAGE_BYTES) && window.is_multiple_of(PAGE_BYTES));
        debug_assert!(window <= capacity && capacity > 0);
        let too_large = || io::Error::new(io::ErrorKind::InvalidInput, format!("{capacity} bytes of memory"));
        let len = capacity.checked_add(window).ok_or_else(too_large)?;
        let alignment = if capacity >= HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let reserved_len = len.checked_add(alignment - PAGE_BYTES).ok_or_else(too_large)?;
        // SAFETY: a new mapping at an address that the system chooses touches nothing that exists.
        let reserved = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                reserved_len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let padding = reserved.addr().next_multiple_of(alignment) - reserved.addr();
        // From here on, the drop unmaps the range, also on errors.
        Ok(Self {
            reserved: NonNull::new(reserved).ok_or_else(too_large)?,
            reserved_len,
            start: NonNull::new(reserved.cast::<u8>().wrapping_add(padding)).ok_or_else(too_large)?,
            len,
            window,
        })
    }

    fn share_window(&self, capacity: usize, window: usize) -> io::Result<()> {
        let file = memfd_create("alluvium-ring", MemfdFlags::CLOEXEC)?;
        ftruncate(&file, window as u64)?;
        for offset in [0, capacity] {
            // SAFETY: the range is within the reserved one, which belongs to this value, and there are no references
            // into it yet.
            unsafe {
                mmap(
                    self.start.as_ptr().wrapping_add(offset).cast(),
                    window,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED | MapFlags::FIXED,
                    file.as_fd(),
                    0,
                )?;
            }
        }
        Ok(())
    }

    /// Asks for huge pages for the range `from..end`, and converts its small pages up to `used`, after which nothing
    /// was touched: some 0.2 ms for 2 MiB.
    ///
    /// For mappings made with [`Pages::AsUsed`]. The window, which is not anonymous, stays as it is.
    pub fn use_huge_pages(&self, from: usize, used: usize, end: usize) {
        let from = from.max(self.window).next_multiple_of(HUGE_PAGE_BYTES);
        let end = end.min(self.len - self.window) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if self.len - self.window < HUGE_PAGE_BYTES || from >= end {
            return;
        }
        self.advise(from, end - from, Advice::LinuxHugepage);
        let used = used.min(end) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        if from < used {
            let address = self.start.as_ptr().wrapping_add(from).cast();
            // Older systems refuse this, and convert the pages in the background over time. SAFETY: whole pages of this
            // mapping, whose content the call does not change, also for concurrent accesses.
            unsafe { collapse::madvise(address, used - from, collapse::ADVICE) };
        }
    }

    fn advise(&self, from: usize, len: usize, advice: Advice) {
        let address = self.start.as_ptr().wrapping_add(from).cast();
        // A refusal costs only speed. SAFETY: the range is within the mapping; advice on the size of pages changes no
        // content.
        let _ = unsafe { madvise(address, len, advice) };
    }

    /// The first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Bytes that may be accessed, including the second mapping of the window.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns all memory to the system, for good: nothing is written here any more. It reads as zeros afterwards and
    /// stays accessible until the drop. The system counts the mappings of a process (65,530 of them, unless it was
    /// told otherwise), and joins this range with other such ranges next to it.
    pub fn retire(&self) {
        let (reserved, flags) =
            (self.reserved.as_ptr(), MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED);
        // SAFETY: the range is the reserved one, which belongs to this value. Its bytes become zeros while others share
        // them as atomics, to which this is a store like any other: all bit patterns are valid.
        let mapped =
            unsafe { mmap_anonymous(reserved, self.reserved_len, ProtFlags::READ | ProtFlags::WRITE, flags) };
        if mapped.is_err() {
            self.release(0, self.len);
        }
    }

    /// Returns the memory of the whole pages within `offset..offset + len` to the system. They read as zeros afterwards
    /// and stay accessible.
    pub fn release(&self, offset: usize, len: usize) {
        let first = offset.next_multiple_of(PAGE_BYTES);
        let end = (offset + len).min(self.len - self.window) / PAGE_BYTES * PAGE_BYTES;
        let parts = [
            (first, end.min(self.window), Advice::LinuxRemove),
            (first.max(self.window), end, Advice::LinuxDontNeed),
        ];
        for (start, end, advice) in parts {
            if start < end {
                let address = self.start.as_ptr().wrapping_add(start).cast();
                // A refusal only leaves the memory resident. SAFETY: whole pages of this mapping. Their bytes become
                // zeros while others share them as atomics, to which this is a store like any other: all bit patterns
                // are valid.
                let _ = unsafe { madvise(address, end - start, advice) };
            }
        }
    }
}

/// Whether stores to a mapping of the file survive a loss of power once the processor's cache is flushed: Linux maps
/// only such files with `MAP_SYNC`.
pub(crate) fn is_persistent(file: &File) -> bool {
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: a new mapping at an address that the system chooses touches nothing that exists.
    let mapped = unsafe { mmap(ptr::null_mut(), PAGE_BYTES, ProtFlags::READ, flags, file.as_fd(), 0) };
    match mapped {
        Ok(address) => {
            // SAFETY: the page that was just mapped, to which there are no references.
            let _ = unsafe { munmap(address, PAGE_BYTES) };
            true
        }
        Err(_) => false,
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `ring` reserved this range, no other value owns it, and references into it have ended, since they
        // borrow this value. A failure would leave it mapped.
        let _ = unsafe { munmap(self.reserved.as_ptr(), self.reserved_len) };
    }
}
