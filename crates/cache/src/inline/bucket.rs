//! Twelve items of up to sixteen bytes in four adjacent cache lines.
//!
//! ```text
//!  line 0: [ tag:16 ×12 ][ lengths:16 ×12 ][ version:32 ][ counts:32 ][ hand:64 ]
//!  lines 1 to 3: [ key and value: 128 ×12 ]
//! ```
//!
//! A tag is never 0, which stands for an empty cell. Readers beside the writer validate what they read by the version
//! (`index/version.rs`).

use alluvium_index::prefetch_element;

use crate::index::{AccessCounts, VersionCounter};
use crate::memory::Element;
use crate::sync::{AtomicU16, AtomicU64, Ordering};

use super::cell::{Cell, Lengths};

/// Cells of a bucket. Fewer under the model checker, for whom every word is an object and every load a choice.
pub(crate) const CELLS: usize = if cfg!(loom) { 2 } else { 12 };

/// Cells in a cache line.
const CELLS_PER_LINE: usize = 4;

/// Which cells there are, a bit each.
const ALL: u32 = (1 << CELLS) - 1;

/// See the module.
#[derive(Debug)]
#[repr(C, align(256))]
pub(crate) struct InlineBucket {
    tags: [AtomicU16; CELLS],
    lengths: [AtomicU16; CELLS],
    version: VersionCounter,
    counts: AccessCounts,
    /// Where the next search for a victim begins.
    hand: AtomicU64,
    cells: [[AtomicU64; 2]; CELLS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<InlineBucket>() == 256 && std::mem::offset_of!(InlineBucket, cells) == 64);

// SAFETY: atomic integers without drop glue, for which zeros are a value: version 0, no items. The alignment is 256.
unsafe impl Element for InlineBucket {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self::empty()
    }
}

impl InlineBucket {
    /// A bucket without items.
    #[cfg(any(test, not(target_os = "linux"), miri, loom))]
    pub fn empty() -> Self {
        Self {
            tags: std::array::from_fn(|_| AtomicU16::new(0)),
            lengths: std::array::from_fn(|_| AtomicU16::new(0)),
            version: VersionCounter::new(0),
            counts: AccessCounts::none(),
            hand: AtomicU64::new(0),
            cells: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
        }
    }

    /// Counts its changes.
    #[inline(always)]
    pub fn version(&self) -> &VersionCounter {
        &self.version
    }

    /// Accesses of its items.
    #[inline(always)]
    pub fn counts(&self) -> &AccessCounts {
        &self.counts
    }

    /// Starts loading the line of tags.
    #[inline(always)]
    pub fn prefetch_tags(&self) {
        prefetch_element(std::slice::from_ref(self), 0);
    }

    /// Starts loading the cells in `ways`.
    #[inline(always)]
    pub fn prefetch_cells(&self, mut ways: u32) {
        while ways != 0 {
            prefetch_element(&self.cells, ways.trailing_zeros() as usize);
            ways &= ways - 1;
        }
    }

    /// Starts loading all lines side by side, for those who can't wait for the first to tell which other they need.
    #[inline(always)]
    pub fn prefetch_all(&self) {
        self.prefetch_tags();
        for way in (0..CELLS).step_by(CELLS_PER_LINE) {
            prefetch_element(&self.cells, way);
        }
    }

    /// Bit `way` is set for each cell whose item has `tag`; of tag 0 for each that is empty.
    #[inline(always)]
    pub fn matches(&self, tag: u16) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        return super::tags::equal(self, tag) & ALL;
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
        self.tags
            .iter()
            .rev()
            .fold(0, |found, own| found << 1 | u32::from(own.load(Ordering::Relaxed) == tag))
    }

    /// The tag of the cell in `way`.
    #[inline(always)]
    pub fn tag(&self, way: usize) -> u16 {
        self.tags[way].load(Ordering::Relaxed)
    }

    /// The cell in `way`.
    #[inline(always)]
    pub fn cell(&self, way: usize) -> Cell {
        let [low, high] = &self.cells[way];
        let bytes = u128::from(low.load(Ordering::Relaxed)) | u128::from(high.load(Ordering::Relaxed)) << 64;
        Cell { bytes, lengths: Lengths(self.lengths[way].load(Ordering::Relaxed)) }
    }

    /// Writer: replaces the item in `way`, within a change.
    #[inline(always)]
    pub fn set(&self, way: usize, tag: u16, cell: Cell) {
        let [low, high] = &self.cells[way];
        low.store(cell.bytes as u64, Ordering::Relaxed);
        high.store((cell.bytes >> 64) as u64, Ordering::Relaxed);
        self.lengths[way].store(cell.lengths.0, Ordering::Relaxed);
        self.tags[way].store(tag, Ordering::Relaxed);
    }

    /// Writer: empties the cell in `way`, within a change.
    #[inline(always)]
    pub fn clear(&self, way: usize) {
        self.tags[way].store(0, Ordering::Relaxed);
        self.counts.set(way, 0);
    }

    /// The lowest empty cell.
    #[inline(always)]
    pub fn empty_way(&self) -> Option<usize> {
        let empty = self.matches(0);
        (empty != 0).then(|| empty.trailing_zeros() as usize)
    }

    /// The cell of `key`, if it has one.
    #[inline(always)]
    pub fn find(&self, tag: u16, key: &[u8]) -> Option<(usize, Cell)> {
        let mut candidates = self.matches(tag);
        while candidates != 0 {
            let way = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let cell = self.cell(way);
            if cell.is_of(key) {
                return Some((way, cell));
            }
        }
        None
    }

    /// Writer: the first cell from the hand on whose item was not accessed since the hand passed it; the others lose an
    /// access. `None` if all were.
    pub fn next_victim(&self) -> Option<usize> {
        let hand = self.hand.load(Ordering::Relaxed) as usize;
        for way in (hand..hand + CELLS).map(|way| way % CELLS) {
            match self.counts.get(way) {
                0 => {
                    self.hand.store(way as u64 + 1, Ordering::Relaxed);
                    return Some(way);
                }
                count => self.counts.set(way, count - 1),
            }
        }
        None
    }

    /// Ways of all items.
    pub fn ways(&self) -> impl Iterator<Item = usize> + '_ {
        (0..CELLS).filter(|&way| self.tag(way) != 0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_told_from_the_others() {
        let bucket = InlineBucket::empty();
        assert_eq!((bucket.matches(0), bucket.matches(1)), (ALL, 0));
        for way in 0..CELLS {
            assert_eq!(bucket.empty_way(), Some(way));
            let tag = [7, 0x8000, 0xffff][way % 3];
            bucket.set(way, tag, Cell::new(&[way as u8; 8], &[way as u8 ^ 0xff; 5]).unwrap());
            // Whatever lies beside the tags is none.
            assert_eq!(bucket.tag(way), tag);
        }
        assert_eq!(bucket.empty_way(), None);
        assert_eq!([7, 0x8000, 0xffff, 8].map(|tag| bucket.matches(tag)), [0x249, 0x492, 0x924, 0]);
        for way in 0..CELLS {
            let (found, cell) = bucket.find(bucket.tag(way), &[way as u8; 8]).unwrap();
            assert_eq!((found, cell.parts().1), (way, vec![way as u8 ^ 0xff; 5]));
            assert_eq!(bucket.find(bucket.tag(way), &[way as u8; 7]), None);
        }
        bucket.clear(5);
        assert_eq!((bucket.empty_way(), bucket.ways().count()), (Some(5), CELLS - 1));
    }
}
