//! What belongs to a bucket and does not survive: the version by which readers validate, access counts, and whether an
//! item was verified.

use crate::index::VersionCounter;
use crate::memory::Element;
use crate::sync::{AtomicU32, Ordering};

use super::geometry::WAYS;

const COUNT_MAX: u32 = 3;
/// Position of the bits of verified items, above two bits of count for each way.
const VERIFIED_SHIFT: u32 = 2 * WAYS as u32;

/// See the module. Marks are loaded and stored by all threads without a lock, so one may be lost. A lost count is one
/// access less; an item whose mark is lost is verified again.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Beside {
    version: VersionCounter,
    marks: AtomicU32,
}

// SAFETY: atomic integers without padding or drop glue, for which zeros are a valid value: version 0, no marks.
unsafe impl Element for Beside {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self { version: VersionCounter::new(0), marks: AtomicU32::new(0) }
    }
}

impl Beside {
    #[inline(always)]
    pub fn version(&self) -> &VersionCounter {
        &self.version
    }

    /// Accesses that were counted, 0 to 3.
    pub fn count(&self, way: usize) -> u32 {
        self.marks.load(Ordering::Relaxed) >> (2 * way) & COUNT_MAX
    }

    /// Counts an access.
    #[inline(always)]
    pub fn count_access(&self, way: usize) {
        let marks = self.marks.load(Ordering::Relaxed);
        if marks >> (2 * way) & COUNT_MAX != COUNT_MAX {
            self.marks.store(marks + (1 << (2 * way)), Ordering::Relaxed);
        }
    }

    /// Whether the item was verified, or written by this process. A way whose item was is never again one whose item
    /// was not: what a process writes needs no verification, and it is the only one that writes.
    #[inline(always)]
    pub fn is_verified(&self, way: usize) -> bool {
        self.marks.load(Ordering::Relaxed) & 1 << (VERIFIED_SHIFT + way as u32) != 0
    }

    /// Notes that the item was verified.
    pub fn set_verified(&self, way: usize) {
        let marks = self.marks.load(Ordering::Relaxed) | 1 << (VERIFIED_SHIFT + way as u32);
        self.marks.store(marks, Ordering::Relaxed);
    }

    /// Writer: a new item was stored, with this count.
    #[inline(always)]
    pub fn reset(&self, way: usize, count: u32) {
        let marks = self.marks.load(Ordering::Relaxed) & !(COUNT_MAX << (2 * way));
        let verified = 1 << (VERIFIED_SHIFT + way as u32);
        self.marks.store(marks | count.min(COUNT_MAX) << (2 * way) | verified, Ordering::Relaxed);
    }
}
