//! The memory of a circular log: words in a circle.
//!
//! On Linux the first bytes of the ring are mapped once more behind its end (Lim's thesis, §5.3.3, "first page mapped
//! twice"), so that an item that crosses the end is contiguous. Unlike MICA's prototype this needs no pool of huge
//! pages: only the window that appears twice comes from a memory file, all else is anonymous memory with transparent
//! huge pages. Elsewhere, and under the checkers Miri and loom, words wrap one by one.
//!
//! Every access is an atomic load or store of a word, relaxed, or of several words written out ([`vectors`]): readers
//! run beside the writer, may see anything, and validate what they saw (see `index::bucket`). There are no data races
//! because there are no plain accesses; the one exception is [`Ring::bytes`], whose caller proves that nobody writes.

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

/// Bytes of a word, the unit of places in a ring.
pub(crate) const UNIT_BYTES: usize = 8;

#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const LINE_BYTES: usize = 64;
/// Lines of an item that are loaded ahead at most: an item of 128+1024 bytes.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
const PREFETCH_LINES_MAX: usize = 20;
/// Lines of them that are loaded into the cache nearest to the core, which has few places for loads under way. The
/// others only come to the next one.
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
    /// What the system says when it refuses.
    pub fn new(capacity: usize, window: usize, pages: Pages) -> io::Result<Self> {
        Ok(Self { mapping: super::mapped::Mapping::ring(capacity, window, pages)? })
    }

    /// Has the bytes in `from..end` lie in huge pages, also those before `used`, behind which nothing was touched.
    pub fn use_huge_pages(&self, from: usize, used: usize, end: usize) {
        self.mapping.use_huge_pages(from, used, end);
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

    /// What `COUNT` words from word number `start` on hold; `None` where they reach beyond the ring.
    #[inline(always)]
    pub fn load<const COUNT: usize>(&self, start: usize) -> Option<[u64; COUNT]> {
        let words = self.words();
        let starts = words.len().wrapping_sub(COUNT - 1);
        if start >= starts || starts > words.len() {
            return None;
        }
        // SAFETY: there are at least `COUNT` words, of which the first is one of those that have `COUNT` - 1 behind it.
        Some(std::array::from_fn(|at| unsafe { words.get_unchecked(start + at) }.load(Ordering::Relaxed)))
    }

    /// Where `len` bytes from `start` on lie, all of them within the mapping.
    #[inline(always)]
    fn place(&self, start: usize, len: usize) -> *mut u8 {
        let total = self.mapping.len();
        assert!(start <= total && len <= total - start, "bytes within the ring");
        self.mapping.start().as_ptr().wrapping_add(start)
    }

    /// `len` bytes from `start` on; `None` where they can't be given in one piece.
    ///
    /// # Safety
    /// No word of the range is stored to while the slice lives.
    #[inline(always)]
    pub unsafe fn bytes(&self, start: usize, len: usize) -> Option<&[u8]> {
        // SAFETY: within the mapping, as `place` checks; not written to meanwhile, by the caller's promise.
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

    /// Starts loading the lines of the bytes `start..start + len`, at least one. As many instructions wherever they
    /// begin, so that no branch depends on that.
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

    /// Gives back the memory of `start..start + len` bytes; it reads as zeros afterwards.
    pub fn release(&self, start: usize, len: usize) {
        self.mapping.release(start, len);
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
impl Ring {
    /// Copies the bytes from byte `start` on.
    #[inline(always)]
    pub fn copy_out(&self, start: usize, out: &mut [u8]) {
        // SAFETY: within the mapping, as `place` checks. All accesses to it are atomic, or those of `vectors`, but for
        // `bytes`, while nobody writes.
        unsafe { vectors::copy_out(self.place(start, out.len()), out.as_mut_ptr(), out.len()) }
    }

    /// Copies the bytes from byte `start` on into room that may be uninitialized.
    #[inline(always)]
    pub fn copy_into<'a>(&self, start: usize, room: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        // SAFETY: as above; all of the room has been written when it is taken for initialized.
        unsafe {
            vectors::copy_out(self.place(start, room.len()), room.as_mut_ptr().cast(), room.len());
            std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len())
        }
    }

    /// Copies `bytes` to byte `start` and what follows, as the only writer.
    #[inline(always)]
    pub fn copy_in(&self, start: usize, bytes: &[u8]) {
        // SAFETY: as above; a ring has one writer at a time, who passed a gate.
        unsafe { vectors::copy_in(self.place(start, bytes.len()), bytes) }
    }

    /// Whether the bytes from byte `start` on are `bytes`.
    #[inline(always)]
    pub fn is_equal(&self, start: usize, bytes: &[u8]) -> bool {
        // SAFETY: as for `copy_out`.
        unsafe { vectors::is_equal(self.place(start, bytes.len()), bytes) }
    }

    /// The bytes at `start` and behind it.
    #[inline(always)]
    pub fn pair(&self, start: usize) -> [u8; 2] {
        // SAFETY: as for `copy_out`.
        unsafe { vectors::load_pair(self.place(start, 2)) }
    }

    /// Stores the bytes at `start` and behind it, as the only writer.
    #[inline(always)]
    pub fn set_pair(&self, start: usize, pair: [u8; 2]) {
        // SAFETY: as for `copy_in`.
        unsafe { vectors::store_pair(self.place(start, 2), pair) }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom))))]
impl Ring {
    /// Copies the bytes from byte `start` on.
    pub fn copy_out(&self, start: usize, out: &mut [u8]) {
        words::copy_out(|unit| self.word(unit), start, out);
    }

    /// Copies the bytes from byte `start` on into room that may be uninitialized.
    pub fn copy_into<'a>(&self, start: usize, room: &'a mut [MaybeUninit<u8>]) -> &'a mut [u8] {
        room.fill(MaybeUninit::new(0));
        // SAFETY: all of it was just written.
        let out = unsafe { std::slice::from_raw_parts_mut(room.as_mut_ptr().cast(), room.len()) };
        self.copy_out(start, out);
        out
    }

    /// Copies `bytes` to byte `start` and what follows, as the only writer.
    pub fn copy_in(&self, start: usize, bytes: &[u8]) {
        words::copy_in(|unit| self.word(unit), start, bytes);
    }

    /// Whether the bytes from byte `start` on are `bytes`.
    pub fn is_equal(&self, start: usize, bytes: &[u8]) -> bool {
        words::is_equal(|unit| self.word(unit), start, bytes)
    }

    /// The bytes at `start` and behind it.
    pub fn pair(&self, start: usize) -> [u8; 2] {
        let mut pair = [0; 2];
        self.copy_out(start, &mut pair);
        pair
    }

    /// Stores the bytes at `start` and behind it, as the only writer.
    pub fn set_pair(&self, start: usize, pair: [u8; 2]) {
        self.copy_in(start, &pair);
    }
}

#[cfg(any(not(target_os = "linux"), miri, loom))]
impl Ring {
    /// Nothing here.
    pub fn use_huge_pages(&self, _from: usize, _used: usize, _end: usize) {}

    /// A ring of `capacity` bytes.
    pub fn new(capacity: usize, window: usize, _pages: Pages) -> io::Result<Self> {
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

    /// What `COUNT` words from word number `start` on hold.
    pub fn load<const COUNT: usize>(&self, start: usize) -> Option<[u64; COUNT]> {
        Some(std::array::from_fn(|at| self.word(start + at).load(Ordering::Relaxed)))
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

    /// Nothing here.
    pub fn prefetch_bytes(&self, _start: usize, _len: usize) {}

    /// Nothing here: memory goes back with the ring.
    pub fn release(&self, _start: usize, _len: usize) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::words;

    /// Both ways of copying, for all short lengths, places within words, and across the end.
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
