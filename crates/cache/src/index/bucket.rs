//! Fifteen entries and their version in two cache lines.
//!
//! # How a reader beside the writer knows that it read one thing
//!
//! The version counts up by one before a change of the bucket, of an item that one of its entries refers to, or before
//! such an item's space is used again, and by one after it (Lim's thesis, §5.3.3). A reader takes the version, waits
//! until it is even, reads entries and items, and takes it again: were they equal, nothing changed in between.
//!
//! 1. [`begin_read`](Bucket::begin_read) acquires: what was written before the version became even is seen.
//! 2. All loads in between are relaxed; they may see anything.
//! 3. [`is_unchanged`](Bucket::is_unchanged) is an acquire fence and a relaxed load. It pairs with the release fence in
//!    [`begin_change`](Bucket::begin_change): a reader that saw a store from behind that fence sees the odd version.
//! 4. [`end_change`](Bucket::end_change) releases: it pairs with 1.
//!
//! Space is used again only after its entry was removed, with a change of the version, and behind the release fence of
//! `CircularLog::reserve`. A reader that saw a byte of the new item therefore sees the changed version too. The version
//! has 32 bits; a reader would be fooled if exactly 2^31 changes of one bucket fell within one read.
//!
//! Beside the version are two bits for each entry that count accesses, up to 3. Everybody loads and stores them without
//! a lock, for a locked instruction would let no lookup begin to load before the one before it has ended. An access may
//! so be lost, and a new item may begin with the count of the one that it replaced: the choice of what is evicted bears
//! that.

use crate::canary::{Canary, is_broken};
use crate::memory::Element;
use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, spin_hint};

use super::entry::Entry;

/// Entries of a bucket. Fewer under the model checker, for whom every word is an object and every load a choice.
pub(crate) const WAYS: usize = if cfg!(loom) { 4 } else { 15 };

const COUNT_BITS: u32 = 2;
const COUNT_MAX: u32 = (1 << COUNT_BITS) - 1;

/// Two cache lines.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Bucket {
    version: AtomicU32,
    /// Access counts of the entries; in store mode the number of the spare bucket behind this one.
    counts_or_link: AtomicU32,
    entries: [AtomicU64; WAYS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 128);

// SAFETY: atomic integers without padding or drop glue, for which zeros are a value: version 0, no entries. The
// alignment is 128.
unsafe impl Element for Bucket {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self::empty()
    }
}

/// A bucket's even version when a read began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u32);

impl Bucket {
    /// A bucket without entries.
    #[cfg(any(test, not(target_os = "linux"), miri, loom))]
    pub fn empty() -> Self {
        Self {
            version: AtomicU32::new(0),
            counts_or_link: AtomicU32::new(0),
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Waits until no change is going on.
    #[inline(always)]
    pub fn begin_read(&self) -> Version {
        loop {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                return Version(version);
            }
            spin_hint();
        }
    }

    /// What [`begin_read`](Self::begin_read) returns, if it needn't wait.
    #[inline(always)]
    pub fn version_at_rest(&self) -> Option<Version> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(Version(version))
    }

    /// Whether everything loaded since [`begin_read`](Self::begin_read) belongs together.
    #[inline(always)]
    pub fn is_unchanged(&self, since: Version) -> bool {
        if !is_broken(Canary::ValidationUnfenced) {
            fence(Ordering::Acquire);
        }
        self.version.load(Ordering::Relaxed) == since.0
    }

    /// Writer: makes readers wait, and those repeat that are under way.
    #[inline(always)]
    pub fn begin_change(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        if !is_broken(Canary::ChangeUnfenced) {
            fence(Ordering::Release);
        }
    }

    /// Writer: lets readers go on.
    #[inline(always)]
    pub fn end_change(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// Starts loading the second line.
    #[inline(always)]
    pub fn prefetch_second_line(&self) {
        alluvium_index::prefetch_element(&self.entries, WAYS - 1);
    }

    /// The entry in `way`.
    #[inline(always)]
    pub fn entry(&self, way: usize) -> Entry {
        Entry(self.entries[way].load(Ordering::Relaxed))
    }

    /// Writer: replaces the entry in `way`, within a change.
    #[inline(always)]
    pub fn set_entry(&self, way: usize, entry: Entry) {
        self.entries[way].store(entry.0, Ordering::Relaxed);
    }

    /// Bit `way` is set for each entry with `tag`.
    #[inline(always)]
    pub fn matches(&self, tag: u16) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        // The first word is no entry.
        return super::tags::equal(self, tag) >> 1;
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
        // From the last way to the first, so that each comparison's outcome is shifted in: few instructions a way.
        self.entries.iter().rev().fold(0, |found, entry| {
            let difference = entry.load(Ordering::Relaxed) ^ u64::from(tag) << Entry::TAG_SHIFT;
            found << 1 | u32::from(difference < 1 << Entry::TAG_SHIFT)
        })
    }

    /// The lowest empty way.
    #[inline(always)]
    pub fn empty_way(&self) -> Option<usize> {
        let empty = self.matches(0);
        (empty != 0).then(|| empty.trailing_zeros() as usize)
    }

    /// Accesses counted of the entry in `way`, 0 to 3.
    #[inline(always)]
    pub fn count(&self, way: usize) -> u32 {
        self.counts_or_link.load(Ordering::Relaxed) >> shift(way) & COUNT_MAX
    }

    /// Sets the count of the entry in `way`.
    #[inline(always)]
    pub fn set_count(&self, way: usize, count: u32) {
        debug_assert!(count <= COUNT_MAX);
        let others = self.counts_or_link.load(Ordering::Relaxed) & !(COUNT_MAX << shift(way));
        self.counts_or_link.store(others | count << shift(way), Ordering::Relaxed);
    }

    /// Store mode: the spare bucket behind this one, which never is number 0.
    #[inline(always)]
    pub fn link(&self) -> Option<usize> {
        let link = self.counts_or_link.load(Ordering::Relaxed);
        (link != 0).then_some(link as usize)
    }

    /// Writer, within a change of the chain: sets the spare bucket.
    pub fn set_link(&self, bucket: Option<usize>) {
        self.counts_or_link.store(bucket.unwrap_or(0) as u32, Ordering::Relaxed);
    }

    /// Counts an access to the entry in `way`, up to `max`, 1 or 2. The count may be lost.
    #[inline(always)]
    pub fn count_access(&self, way: usize, max: u32) {
        debug_assert!(max == 1 || max == 2);
        let counts = self.counts_or_link.load(Ordering::Relaxed);
        // A count up to such a maximum has reached it when it has its bit.
        if counts & max << shift(way) == 0 {
            self.counts_or_link.store(counts + (1 << shift(way)), Ordering::Relaxed);
        }
    }
}

#[inline(always)]
fn shift(way: usize) -> u32 {
    COUNT_BITS * way as u32
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_of_ways_and_the_version_do_not_touch_each_other() {
        let bucket = Bucket::empty();
        let version = bucket.begin_read();
        for way in 0..WAYS {
            (0..3).for_each(|_| bucket.count_access(way, 2));
        }
        bucket.set_count(3, 1);
        let counts: Vec<u32> = (0..WAYS).map(|way| bucket.count(way)).collect();
        assert_eq!(counts, [2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        assert!(bucket.is_unchanged(version));
        bucket.begin_change();
        assert!(!bucket.is_unchanged(version));
        bucket.end_change();
        assert!(!bucket.is_unchanged(version));
        assert_eq!(bucket.count(14), 2);
        assert!(bucket.is_unchanged(bucket.begin_read()));
    }

    #[test]
    fn versions_wrap() {
        let bucket = Bucket::empty();
        bucket.version.store(u32::MAX, Ordering::Relaxed);
        bucket.set_count(0, 1);
        bucket.end_change();
        assert_eq!((bucket.begin_read(), bucket.count(0)), (Version(0), 1));
    }
}
