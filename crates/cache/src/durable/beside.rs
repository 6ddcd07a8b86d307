//! What belongs to a bucket and does not survive: the version by which readers validate, access counts, whether an item
//! was verified, and the number of items in the write cache.

use crate::index::VersionCounter;
use crate::memory::Element;
use crate::sync::{AtomicU8, AtomicU16, Ordering};

const COUNT_MAX: u16 = 3;

/// See the module. Counts and marks are loaded and stored by all threads without a lock, so one may be lost. A lost
/// count is one access less; an item whose mark is lost is verified again.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Beside {
    version: VersionCounter,
    /// Two bits for each way.
    counts: AtomicU16,
    /// A bit for each way.
    verified: AtomicU8,
    /// Changed by the writer alone, within a change of the bucket.
    hot: AtomicU8,
}

// SAFETY: atomic integers without padding or drop glue, for which zeros are a valid value: version 0, nothing counted
// or marked.
unsafe impl Element for Beside {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self {
            version: VersionCounter::new(0),
            counts: AtomicU16::new(0),
            verified: AtomicU8::new(0),
            hot: AtomicU8::new(0),
        }
    }
}

impl Beside {
    #[inline(always)]
    pub fn version(&self) -> &VersionCounter {
        &self.version
    }

    /// Accesses that were counted, 0 to 3.
    pub fn count(&self, way: usize) -> u32 {
        (self.counts.load(Ordering::Relaxed) >> (2 * way) & COUNT_MAX).into()
    }

    /// Counts an access.
    #[inline(always)]
    pub fn count_access(&self, way: usize) {
        let counts = self.counts.load(Ordering::Relaxed);
        if counts >> (2 * way) & COUNT_MAX != COUNT_MAX {
            self.counts.store(counts + (1 << (2 * way)), Ordering::Relaxed);
        }
    }

    /// Whether the item was verified, or written by this process. A way whose item was is never again one whose item
    /// was not: what a process writes needs no verification, and it is the only one that writes.
    #[inline(always)]
    pub fn is_verified(&self, way: usize) -> bool {
        self.verified.load(Ordering::Relaxed) & 1 << way != 0
    }

    /// Notes that the item was verified.
    pub fn set_verified(&self, way: usize) {
        let verified = self.verified.load(Ordering::Relaxed) | 1 << way;
        self.verified.store(verified, Ordering::Relaxed);
    }

    /// Writer: a new item was stored, with this count.
    #[inline(always)]
    pub fn reset(&self, way: usize, count: u32) {
        let counts = self.counts.load(Ordering::Relaxed) & !(COUNT_MAX << (2 * way));
        let count = (count as u16).min(COUNT_MAX);
        self.counts.store(counts | count << (2 * way), Ordering::Relaxed);
        self.set_verified(way);
    }

    /// How many keys of the bucket have their item in the write cache: at most as many as a set of it has slots.
    #[inline(always)]
    pub fn hot(&self) -> u8 {
        self.hot.load(Ordering::Relaxed)
    }

    /// Writer, within a change: one more key has its item in the write cache.
    pub fn add_hot(&self) {
        self.hot.store(self.hot() + 1, Ordering::Relaxed);
    }

    /// Writer, within a change: one less.
    pub fn remove_hot(&self) {
        self.hot.store(self.hot().saturating_sub(1), Ordering::Relaxed);
    }
}
