//! How a reader beside the writer detects that what it read is consistent.
//!
//! The version is incremented before a change of the bucket, before a change of an item that one of its entries refers
//! to, or before such an item's space is reused, and again afterwards (Lim's thesis, §5.3.3). A reader loads the
//! version, waits until it is even, reads entries and items, and loads the version again: if both are equal, nothing
//! changed in between.
//!
//! 1. [`begin_read`](VersionCounter::begin_read) acquires: the reader sees what was written before the version became
//!    even.
//! 2. All loads in between are relaxed; they may see any value.
//! 3. [`is_unchanged`](VersionCounter::is_unchanged) is an acquire fence followed by a relaxed load. It pairs with the
//!    release fence in [`begin_change`](VersionCounter::begin_change): a reader that saw a store after that fence sees
//!    the odd version.
//! 4. [`end_change`](VersionCounter::end_change) releases: it pairs with 1.
//!
//! Space is reused only after its entry was removed, with a change of the version, and after the release fence of
//! `CircularLog::reserve`. A reader that saw a byte of the new item therefore sees the changed version too. The version
//! has 32 bits; validation would fail to notice only if exactly 2^31 changes of one bucket happened during one read.

use crate::canary::{Canary, is_broken};
use crate::sync::{AtomicU32, Ordering, fence, spin_hint};

/// Counts the changes of a bucket.
#[derive(Debug)]
pub(crate) struct VersionCounter(AtomicU32);

/// A bucket of either kind, which has a version.
pub(crate) trait Versioned {
    /// Whether the bucket itself holds items.
    const IS_INLINE: bool;

    /// The bucket's version.
    fn version(&self) -> &VersionCounter;

    /// Writer, within a change: drops all items of the bucket and returns how many there were.
    fn forget_all(&self) -> u64;
}

/// A bucket's even version when a read began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version(u32);

impl VersionCounter {
    /// The version of a bucket that was incremented `count` times.
    pub fn new(count: u32) -> Self {
        Self(AtomicU32::new(count))
    }

    /// Waits until no change is in progress.
    #[inline(always)]
    pub fn begin_read(&self) -> Version {
        loop {
            if let Some(version) = self.at_rest() {
                return version;
            }
            spin_hint();
        }
    }

    /// As [`begin_read`](Self::begin_read), but returns `None` instead of waiting.
    #[inline(always)]
    pub fn at_rest(&self) -> Option<Version> {
        let version = self.0.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(Version(version))
    }

    /// Whether everything loaded since [`begin_read`](Self::begin_read) is consistent.
    #[inline(always)]
    pub fn is_unchanged(&self, since: Version) -> bool {
        if !is_broken(Canary::ValidationUnfenced) {
            fence(Ordering::Acquire);
        }
        self.0.load(Ordering::Relaxed) == since.0
    }

    /// Writer: makes new readers wait, and those in progress repeat.
    #[inline(always)]
    pub fn begin_change(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Relaxed);
        if !is_broken(Canary::ChangeUnfenced) {
            fence(Ordering::Release);
        }
    }

    /// Writer: lets readers continue.
    #[inline(always)]
    pub fn end_change(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version.wrapping_add(1), Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn changes_are_noticed_also_where_versions_wrap() {
        let counter = VersionCounter::new(u32::MAX - 1);
        let version = counter.begin_read();
        assert!(counter.is_unchanged(version));
        counter.begin_change();
        assert!(!counter.is_unchanged(version) && counter.at_rest().is_none());
        counter.end_change();
        assert!(!counter.is_unchanged(version));
        assert_eq!(counter.begin_read(), Version(0));
    }
}
