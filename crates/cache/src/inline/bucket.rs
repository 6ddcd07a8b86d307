//! Tags, version and access counts of twelve cells, in half a cache line.
//!
//! A tag of 0 stands for an empty cell; tags of items are never 0. Readers beside the writer validate what they read by
//! the version (`index/version.rs`).

use alluvium_index::prefetch_element;

use crate::index::{AccessCounts, VersionCounter, Versioned};
use crate::memory::Element;
use crate::sync::{AtomicU16, Ordering};

/// Cells of a bucket. Fewer under the model checker, which treats every word as an object and every load as a choice.
pub(crate) const CELLS: usize = if cfg!(loom) { 2 } else { 12 };

/// One bit for each existing cell.
#[cfg(any(test, all(target_arch = "x86_64", not(miri), not(loom))))]
const ALL: u32 = (1 << CELLS) - 1;

/// See the module.
#[derive(Debug)]
#[repr(C, align(32))]
pub(crate) struct InlineBucket {
    tags: [AtomicU16; CELLS],
    version: VersionCounter,
    /// Includes where the next search for a victim starts.
    counts: AccessCounts,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<InlineBucket>() == 32);

// SAFETY: atomic integers without drop glue, for which zeros are a valid value: version 0, no items. The alignment is
// 32.
unsafe impl Element for InlineBucket {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self::empty()
    }
}

impl Versioned for InlineBucket {
    const IS_INLINE: bool = true;

    #[inline(always)]
    fn version(&self) -> &VersionCounter {
        &self.version
    }

    fn forget_all(&self) -> u64 {
        self.tags.iter().filter(|tag| tag.swap(0, Ordering::Relaxed) != 0).count() as u64
    }
}

impl InlineBucket {
    /// A bucket without items.
    #[cfg(any(test, not(target_os = "linux"), miri, loom))]
    pub fn empty() -> Self {
        Self {
            tags: std::array::from_fn(|_| AtomicU16::new(0)),
            version: VersionCounter::new(0),
            counts: AccessCounts::none(),
        }
    }

    /// Access counts of its items.
    #[inline(always)]
    pub fn counts(&self) -> &AccessCounts {
        &self.counts
    }

    /// Starts loading the bucket.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch_element(std::slice::from_ref(self), 0);
    }

    /// Sets bit `way` for each cell whose item has `tag`; for tag 0, for each empty cell.
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

    /// Writer, within a change: gives the cell in `way` an item with `tag` that was accessed `count` times.
    #[inline(always)]
    pub fn set(&self, way: usize, tag: u16, count: u32) {
        self.tags[way].store(tag, Ordering::Relaxed);
        self.counts.set(way, count);
    }

    /// Writer: empties the cell in `way`, within a change.
    #[inline(always)]
    pub fn clear(&self, way: usize) {
        self.set(way, 0, 0);
    }

    /// Writer: the first cell from the hand on whose item was not accessed since the hand passed it; the items that the
    /// hand passes lose one access each. `None` if all were accessed.
    pub fn next_victim(&self) -> Option<usize> {
        let hand = self.counts.hand();
        for way in (hand..hand + CELLS).map(|way| way % CELLS) {
            match self.counts.get(way) {
                0 => {
                    self.counts.set_hand((way + 1) % CELLS);
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
    fn every_way_is_told_from_the_others() {
        let bucket = InlineBucket::empty();
        assert_eq!((bucket.matches(0), bucket.matches(1)), (ALL, 0));
        for way in 0..CELLS {
            let tag = [7, 0x8000, 0xffff][way % 3];
            bucket.set(way, tag, 1);
            assert_eq!(bucket.tag(way), tag);
            assert_eq!(bucket.matches(0), ALL & (ALL << (way + 1)));
        }
        assert_eq!([7, 0x8000, 0xffff, 8].map(|tag| bucket.matches(tag)), [0x249, 0x492, 0x924, 0]);
        bucket.clear(5);
        assert_eq!((bucket.matches(0), bucket.ways().count()), (1 << 5, CELLS - 1));
    }

    #[test]
    fn a_hand_goes_round_and_takes_accesses() {
        let bucket = InlineBucket::empty();
        (0..CELLS).for_each(|way| bucket.set(way, 1, u32::from(way != 3)));
        assert_eq!(bucket.next_victim(), Some(3));
        // Those before the third have lost their accesses.
        bucket.counts().set(3, 1);
        assert_eq!(bucket.next_victim(), Some(0));
        assert_eq!(bucket.next_victim(), Some(1));
        (0..CELLS).for_each(|way| bucket.counts().set(way, 2));
        assert_eq!([0; 3].map(|_| bucket.next_victim()), [None, None, Some(2)]);
    }
}
