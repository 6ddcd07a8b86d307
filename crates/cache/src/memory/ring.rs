//! The memory of a circular log: words in a circle.
//!
//! On Linux the first bytes of the ring are mapped once more behind its end (Lim's thesis, §5.3.3, "first page mapped
//! twice"), so that an item that crosses the end is contiguous. Unlike MICA's prototype this needs no pool of huge
//! pages: only the window that appears twice comes from a memory file, all else is anonymous memory with transparent
//! huge pages. Elsewhere, and under the checkers Miri and loom, words wrap one by one.
//!
//! Every access is an atomic load or store of a word, relaxed: readers run beside the writer, may see anything, and
//! validate what they saw (see `index::bucket`). There are no data races because there are no plain accesses; the
//! one exception is [`Ring::bytes`], whose caller proves that nobody writes.

use std::io;

#[cfg(any(not(target_os = "linux"), miri, loom))]
use super::PAGE_BYTES;
use crate::sync::AtomicU64;

/// Bytes of a word, the unit of places in a ring.
pub(crate) const UNIT_BYTES: usize = 8;

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const LINE_BYTES: usize = 64;
/// Lines of an item that are loaded ahead: a batch of such items still fits in the cache nearest to the core.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const PREFETCH_LINES_MAX: usize = 18;

/// `capacity` words in a circle. Items start at words below the capacity and are at most `window` bytes long.
#[derive(Debug)]
pub(crate) struct Ring {
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    mapping: super::mapped::Mapping,
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    words: Box<[AtomicU64]>,
}

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
impl Ring {
    /// A ring of `capacity` bytes for items of up to `window` bytes, both multiples of a page.
    ///
    /// # Errors
    /// What the system says when it refuses.
    pub fn new(capacity: usize, window: usize) -> io::Result<Self> {
        Ok(Self { mapping: super::mapped::Mapping::ring(capacity, window)? })
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        let start = self.mapping.start().cast();
        // SAFETY: the mapping has this many bytes, page-aligned and zeroed, and stays until the drop. Nobody makes
        // plain references into it but `bytes`, while nobody writes. Words of the window have two addresses; accesses
        // to either are the processor's atomic accesses to one physical word.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.mapping.len() / UNIT_BYTES) }
    }

    /// `count` words from word number `start` on.
    ///
    /// # Panics
    /// When they reach beyond the window.
    #[inline(always)]
    pub fn run(&self, start: usize, count: usize) -> impl Iterator<Item = &AtomicU64> {
        self.words()[start..start + count].iter()
    }

    /// One word.
    #[inline(always)]
    pub fn word(&self, unit: usize) -> &AtomicU64 {
        &self.words()[unit]
    }

    /// `len` bytes from `start` on; `None` where they can't be given in one piece.
    ///
    /// # Safety
    /// No word of the range is stored to while the slice lives.
    #[inline(always)]
    pub unsafe fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        assert!(start.checked_add(len).is_some_and(|end| end <= self.mapping.len()), "bytes within the ring");
        // SAFETY: within the mapping by the assertion; not written to meanwhile, by the caller's promise.
        Some(unsafe { std::slice::from_raw_parts(self.mapping.start().as_ptr().add(start), len) })
    }

    /// Starts loading the lines of an item of about `len` bytes at word `start`.
    #[inline(always)]
    pub fn prefetch(&self, start: usize, len: usize) {
        let words = self.words();
        let lines = ((start * UNIT_BYTES) % LINE_BYTES + len).div_ceil(LINE_BYTES).min(PREFETCH_LINES_MAX);
        for line in 0..lines.max(1) {
            alluvium_index::prefetch_element(words, start + line * (LINE_BYTES / UNIT_BYTES));
        }
    }

    /// Gives back the memory of `start..start + len` bytes; it reads as zeros afterwards.
    pub fn release(&self, start: usize, len: usize) {
        self.mapping.release(start, len);
    }
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
impl Ring {
    /// A ring of `capacity` bytes.
    pub fn new(capacity: usize, window: usize) -> io::Result<Self> {
        debug_assert!(window <= capacity && (capacity.is_multiple_of(PAGE_BYTES) || cfg!(loom)));
        Ok(Self { words: (0..capacity / UNIT_BYTES).map(|_| AtomicU64::new(0)).collect() })
    }

    /// `count` words from word number `start` on.
    #[inline]
    pub fn run(&self, start: usize, count: usize) -> impl Iterator<Item = &AtomicU64> {
        (start..start + count).map(|unit| self.word(unit))
    }

    /// One word.
    #[inline]
    pub fn word(&self, unit: usize) -> &AtomicU64 {
        &self.words[unit % self.words.len()]
    }

    /// Nothing here: words are not bytes to the model checker, and don't wrap by themselves.
    ///
    /// # Safety
    /// No word of the range is stored to while the slice lives.
    pub unsafe fn bytes(&self, _start: usize, _len: usize) -> Option<&[u8]> {
        None
    }

    /// Nothing here.
    pub fn prefetch(&self, _start: usize, _len: usize) {}

    /// Nothing here: memory goes back with the ring.
    pub fn release(&self, _start: usize, _len: usize) {}
}
