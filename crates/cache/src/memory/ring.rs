//! The memory of a circular log: words in a circle.
//!
//! On Linux the first bytes of the ring are mapped again after its end (Lim's thesis, §5.3.3, "first page mapped
//! twice"), so that an item that crosses the end is contiguous. Unlike MICA's prototype this needs no pool of huge
//! pages: only the window that is mapped twice comes from a memory file; the rest is anonymous memory with transparent
//! huge pages. On other systems, and under the checkers Miri and loom, words wrap one by one.
//!
//! Every access is a relaxed atomic load or store of a word, or an access to several words in assembly ([`vectors`]):
//! readers run beside the writer, may see anything, and validate what they saw (see `index::bucket`). There are no data
//! races because there are no plain accesses. The only exception is [`Ring::bytes`], whose caller guarantees that no
//! thread writes.

use std::io;
use std::mem::MaybeUninit;

#[cfg(any(not(target_os = "linux"), miri, loom))]
use super::PAGE_BYTES;
use super::Pages;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
use super::vectors;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom))))]
use super::words;
use crate::sync::{AtomicU64, Ordering};

/// Bytes of a word, the unit of positions in a ring.
pub(crate) const UNIT_BYTES: usize = 8;

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const LINE_BYTES: usize = 64;
/// Maximum lines of an item that are prefetched: an item of 128+1024 bytes.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const PREFETCH_LINES_MAX: usize = 20;
/// How many of them are prefetched into the cache nearest to the core, which can have few loads in flight. The others
/// are prefetched into the next cache only.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const NEAR_LINES: usize = 2;

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
    /// The system's error if it refuses the memory.
    pub fn new(capacity: usize, window: usize, pages: Pages) -> io::Result<Self> {
        Ok(Self { mapping: super::mapped::Mapping::ring(capacity, window, pages)? })
    }

    /// The first `len` bytes of a file, a multiple of a page, whose space has been allocated. They do not wrap.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn file(file: &std::fs::File, len: usize) -> io::Result<Self> {
        Ok(Self { mapping: super::mapped::Mapping::file(file, len)? })
    }

    /// Writes the pages of a file with the bytes `start..start + len` to its device, and waits.
    ///
    /// # Errors
    /// The system's error if a page could not be written.
    pub fn sync(&self, start: usize, len: usize) -> io::Result<()> {
        self.mapping.sync(start, len)
    }

    /// Asks for huge pages for the bytes `from..end`, including those before `used`, after which nothing was touched.
    pub fn use_huge_pages(&self, from: usize, used: usize, end: usize) {
        self.mapping.use_huge_pages(from, used, end);
    }

    #[inline(always)]
    fn words(&self) -> &[AtomicU64] {
        let start = self.mapping.start().cast();
        // SAFETY: the mapping has this many bytes, page-aligned and zeroed, and stays until the drop. Only `bytes`
        // creates plain references into it, while no thread writes. Words of the window have two addresses; accesses to
        // either are the processor's atomic accesses to one physical word.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), self.mapping.len() / UNIT_BYTES) }
    }

    /// `count` words, starting at word number `start`.
    ///
    /// # Panics
    /// If they extend beyond the window.
    #[inline(always)]
    pub fn run(&self, start: usize, count: usize) -> impl Iterator<Item = &AtomicU64> {
        self.words()[start..start + count].iter()
    }

    /// One word.
    #[inline(always)]
    pub fn word(&self, unit: usize) -> &AtomicU64 {
        &self.words()[unit]
    }

    /// The values of `COUNT` words, starting at word number `start`; `None` if they extend beyond the ring.
    #[inline(always)]
    pub fn load<const COUNT: usize>(&self, start: usize) -> Option<[u64; COUNT]> {
        let words = self.words();
        let starts = words.len().wrapping_sub(COUNT - 1);
        if start >= starts || starts > words.len() {
            return None;
        }
        // SAFETY: there are at least `COUNT` words, and the first one is followed by at least `COUNT` - 1 others.
        Some(std::array::from_fn(|at| unsafe { words.get_unchecked(start + at) }.load(Ordering::Relaxed)))
    }

    /// The address of `len` bytes that start at byte `start`, all of them within the mapping.
    #[inline(always)]
    fn place(&self, start: usize, len: usize) -> *mut u8 {
        let total = self.mapping.len();
        assert!(start <= total && len <= total - start, "bytes within the ring");
        self.mapping.start().as_ptr().wrapping_add(start)
    }

    /// `len` bytes that start at byte `start`; `None` if they are not contiguous.
    ///
    /// # Safety
    /// No word of the range is stored to while the slice lives.
    #[inline(always)]
    pub unsafe fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        // SAFETY: within the mapping, as `place` checks; not written to meanwhile, as the caller guarantees.
        Some(unsafe { std::slice::from_raw_parts(self.place(start, len), len) })
    }

    /// Starts loading the lines of an item of about `len` bytes at word `start`.
    #[inline(always)]
    pub fn prefetch(&self, start: usize, len: usize) {
        let words = self.words();
        let lines = ((start * UNIT_BYTES) % LINE_BYTES + len).div_ceil(LINE_BYTES).min(PREFETCH_LINES_MAX);
        let word = |line: usize| start + line * (LINE_BYTES / UNIT_BYTES);
        (0..lines.clamp(1, NEAR_LINES)).for_each(|line| alluvium_index::prefetch_element(words, word(line)));
        (NEAR_LINES..lines).for_each(|line| alluvium_index::prefetch_element_far(words, word(line)));
    }

    /// Starts loading the lines of the bytes `start..start + len`, at least one. The number of instructions is
    /// independent of `start`, so that no branch depends on it.
    #[inline(always)]
    pub fn prefetch_bytes(&self, start: usize, len: usize) {
        let start = self.mapping.start().as_ptr().wrapping_add(start);
        let mut from_start = 0;
        while from_start < len - 1 {
            alluvium_index::prefetch_address(start.wrapping_add(from_start));
            from_start += LINE_BYTES;
        }
        alluvium_index::prefetch_address(start.wrapping_add(len - 1));
    }

    /// Returns the memory of `len` bytes from `start` to the system; it reads as zeros afterwards.
    pub fn release(&self, start: usize, len: usize) {
        self.mapping.release(start, len);
    }

    /// Returns all memory to the system, for good: nothing may be written here any more. It reads as zeros afterwards.
    pub fn retire(&self) {
        self.mapping.retire();
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
impl Ring {
    /// Copies bytes out, starting at byte `start`.
    #[inline(always)]
    pub fn copy_out(&self, start: usize, out: &mut [u8]) {
        // SAFETY: within the mapping, as `place` checks. All accesses to it are atomic, or those of `vectors`; the
        // exception is `bytes`, while no thread writes.
        unsafe { vectors::copy_out(self.place(start, out.len()), out.as_mut_ptr(), out.len()) }
    }

    /// Copies bytes, starting at byte `start`, into room that may be uninitialized.
    #[inline(always)]
    pub fn copy_into<'a>(&self, start: usize, room: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        // SAFETY: as above; all of the room has been written when it is treated as initialized.
        unsafe {
            vectors::copy_out(self.place(start, room.len()), room.as_mut_ptr().cast(), room.len());
            std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len())
        }
    }

    /// Copies `bytes` to the ring, starting at byte `start`, as the only writer.
    #[inline(always)]
    pub fn copy_in(&self, start: usize, bytes: &[u8]) {
        // SAFETY: as above; a ring has one writer at a time, which passed a gate.
        unsafe { vectors::copy_in(self.place(start, bytes.len()), bytes) }
    }

    /// Whether the bytes starting at byte `start` equal `bytes`.
    #[inline(always)]
    pub fn is_equal(&self, start: usize, bytes: &[u8]) -> bool {
        // SAFETY: as for `copy_out`.
        unsafe { vectors::is_equal(self.place(start, bytes.len()), bytes) }
    }

    /// The byte at `start` and the one after it.
    #[inline(always)]
    pub fn pair(&self, start: usize) -> [u8; 2] {
        // SAFETY: as for `copy_out`.
        unsafe { vectors::load_pair(self.place(start, 2)) }
    }

    /// Stores the byte at `start` and the one after it, as the only writer.
    #[inline(always)]
    pub fn set_pair(&self, start: usize, pair: [u8; 2]) {
        // SAFETY: as for `copy_in`.
        unsafe { vectors::store_pair(self.place(start, 2), pair) }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom))))]
impl Ring {
    /// Copies bytes out, starting at byte `start`.
    pub fn copy_out(&self, start: usize, out: &mut [u8]) {
        words::copy_out(|unit| self.word(unit), start, out);
    }

    /// Copies bytes, starting at byte `start`, into room that may be uninitialized.
    pub fn copy_into<'a>(&self, start: usize, room: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        room.fill(MaybeUninit::new(0));
        // SAFETY: all of it was just written.
        let out = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len()) };
        self.copy_out(start, out);
        out
    }

    /// Copies `bytes` to the ring, starting at byte `start`, as the only writer.
    pub fn copy_in(&self, start: usize, bytes: &[u8]) {
        words::copy_in(|unit| self.word(unit), start, bytes);
    }

    /// Whether the bytes starting at byte `start` equal `bytes`.
    pub fn is_equal(&self, start: usize, bytes: &[u8]) -> bool {
        words::is_equal(|unit| self.word(unit), start, bytes)
    }

    /// The byte at `start` and the one after it.
    pub fn pair(&self, start: usize) -> [u8; 2] {
        let mut pair = [0; 2];
        self.copy_out(start, &mut pair);
        pair
    }

    /// Stores the byte at `start` and the one after it, as the only writer.
    pub fn set_pair(&self, start: usize, pair: [u8; 2]) {
        self.copy_in(start, &pair);
    }
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
impl Ring {
    /// Does nothing here.
    pub fn use_huge_pages(&self, _from: usize, _used: usize, _end: usize) {}

    /// A ring of `capacity` bytes.
    pub fn new(capacity: usize, window: usize, _pages: Pages) -> io::Result<Self> {
        debug_assert!(window <= capacity && (capacity.is_multiple_of(PAGE_BYTES) || cfg!(loom)));
        Ok(Self { words: (0..capacity / UNIT_BYTES).map(|_| AtomicU64::new(0)).collect() })
    }

    /// `count` words, starting at word number `start`.
    #[inline]
    pub fn run(&self, start: usize, count: usize) -> impl Iterator<Item = &AtomicU64> {
        (start..start + count).map(|unit| self.word(unit))
    }

    /// One word.
    #[inline]
    pub fn word(&self, unit: usize) -> &AtomicU64 {
        &self.words[unit % self.words.len()]
    }

    /// The values of `COUNT` words, starting at word number `start`.
    pub fn load<const COUNT: usize>(&self, start: usize) -> Option<[u64; COUNT]> {
        Some(std::array::from_fn(|at| self.word(start + at).load(Ordering::Relaxed)))
    }

    /// Always `None`: to the model checker words are not bytes, and they do not wrap by themselves.
    ///
    /// # Safety
    /// No word of the range is stored to while the slice lives.
    pub unsafe fn bytes(&self, _start: usize, _len: usize) -> Option<&[u8]> {
        None
    }

    /// Does nothing here.
    pub fn prefetch(&self, _start: usize, _len: usize) {}

    /// Does nothing here.
    pub fn prefetch_bytes(&self, _start: usize, _len: usize) {}

    /// Does nothing here: the memory is freed with the ring.
    pub fn release(&self, _start: usize, _len: usize) {}

    /// Does nothing here, likewise.
    pub fn retire(&self) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::words;

    /// Both ways of copying, for all short lengths, offsets within words, and across the end.
    #[test]
    fn bytes_come_back_as_words_and_as_vectors() {
        const CAPACITY: usize = 4096;
        let ring = Ring::new(CAPACITY, CAPACITY, Pages::Huge).unwrap();
        let word = |unit: usize| ring.word(unit);
        let bytes: Vec<u8> = (1..=255).cycle().take(1300).collect();
        for start in (0..18).chain(CAPACITY - 20..CAPACITY) {
            for len in (0..150).chain([255, 256, 257, 300, 383, 1024, 1293]) {
                let bytes = &bytes[len % 7..][..len];
                let others = [start.wrapping_sub(1) % CAPACITY, (start + bytes.len()) % CAPACITY];
                let mut before = [[0]; 2];
                for (other, before) in others.iter().zip(&mut before) {
                    ring.copy_out(*other, before);
                }
                if len % 2 == 0 {
                    ring.copy_in(start, bytes);
                } else {
                    words::copy_in(word, start, bytes);
                }
                for (other, before) in others.iter().zip(&before) {
                    let mut after = [0];
                    ring.copy_out(*other, &mut after);
                    assert_eq!(after, *before, "beside {len} bytes at {start}");
                }
                let mut out = vec![0; bytes.len()];
                ring.copy_out(start, &mut out);
                assert_eq!(out, bytes, "{len} bytes at {start}");
                out.fill(0);
                words::copy_out(word, start, &mut out);
                assert_eq!(out, bytes, "{len} bytes at {start}");
                let mut room = vec![MaybeUninit::uninit(); bytes.len()];
                assert_eq!(ring.copy_into(start, &mut room), bytes);
                assert!(ring.is_equal(start, bytes) && words::is_equal(word, start, bytes));
                for at in 0..bytes.len() {
                    out[at] ^= 0x10;
                    assert!(!ring.is_equal(start, &out) && !words::is_equal(word, start, &out), "{len} {at}");
                    out[at] ^= 0x10;
                }
            }
        }
    }

    #[test]
    fn words_beyond_the_ring_are_refused() {
        let ring = Ring::new(4096, 0, Pages::Huge).unwrap();
        assert_eq!(ring.load(510), Some([0, 0]));
        if cfg!(all(target_os = "linux", not(miri))) {
            assert_eq!(ring.load::<2>(511), None);
            assert_eq!(ring.load::<2>(usize::MAX), None);
        }
    }
}
