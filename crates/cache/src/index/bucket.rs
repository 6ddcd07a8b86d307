//! Fifteen entries, their version and their access counts in two cache lines.

use crate::memory::Element;
use crate::sync::{AtomicU64, Ordering};

use super::counts::AccessCounts;
use super::entry::Entry;
pub(crate) use super::version::Version;
use super::version::{VersionCounter, Versioned};

/// Entries of a bucket. Fewer under the model checker, which treats every word as an object and every load as a choice.
pub(crate) const WAYS: usize = if cfg!(loom) { 4 } else { 15 };

/// Two cache lines.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Bucket {
    version: VersionCounter,
    /// In store mode: the number of the next spare bucket of the chain.
    counts_or_link: AccessCounts,
    entries: [AtomicU64; WAYS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Bucket>() == 128);

// SAFETY: atomic integers without padding or drop glue, for which zeros are a valid value: version 0, no entries. The
// alignment is 128.
unsafe impl Element for Bucket {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self::empty()
    }
}

impl Versioned for Bucket {
    const IS_INLINE: bool = false;

    #[inline(always)]
    fn version(&self) -> &VersionCounter {
        &self.version
    }

    fn forget_all(&self) -> u64 {
        let all = self.entries.iter().map(|entry| entry.swap(0, Ordering::Relaxed));
        all.filter(|&entry| Entry(entry) != Entry::EMPTY).count() as u64
    }
}

impl Bucket {
    /// A bucket without entries.
    #[cfg(any(test, not(target_os = "linux"), miri, loom))]
    pub fn empty() -> Self {
        Self {
            version: VersionCounter::new(0),
            counts_or_link: AccessCounts::none(),
            entries: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Access counts of the entries. Not in store mode.
    #[inline(always)]
    pub fn counts(&self) -> &AccessCounts {
        &self.counts_or_link
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

    /// Sets bit `way` for each entry with `tag`.
    #[inline(always)]
    pub fn matches(&self, tag: u16) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        // The first word is not an entry.
        return super::tags::equal(self, tag) >> 1;
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
        // From the last way to the first, so that each comparison's result is shifted in: few instructions per way.
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

    /// Store mode: the next spare bucket of the chain, which is never number 0.
    #[inline(always)]
    pub fn link(&self) -> Option<usize> {
        let link = self.counts_or_link.0.load(Ordering::Relaxed);
        (link != 0).then_some(link as usize)
    }

    /// Writer, within a change of the chain: sets the next spare bucket.
    pub fn set_link(&self, bucket: Option<usize>) {
        self.counts_or_link.0.store(bucket.unwrap_or(0) as u32, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_and_the_version_do_not_touch_each_other() {
        let bucket = Bucket::empty();
        let version = bucket.version().begin_read();
        (0..WAYS).for_each(|way| bucket.counts().count(way, 2));
        assert!(bucket.version().is_unchanged(version));
        bucket.version().begin_change();
        bucket.version().end_change();
        assert!(!bucket.version().is_unchanged(version));
        assert_eq!(bucket.counts().get(WAYS - 1), 1);
    }
}
