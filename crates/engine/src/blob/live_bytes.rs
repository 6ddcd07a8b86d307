//! How much of a blob file is referred to.

use alluvium_io::sync::atomic::Ordering;

use super::file::BlobFile;

impl BlobFile {
    /// Counts one reference more (its bytes) or less (its bytes, negative).
    pub fn add_live(&self, bytes: i64) {
        self.live.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Bytes of records for all references together.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Acquire).max(0) as u64
    }

    /// Notes that a younger item hides a reference to so many bytes.
    pub fn hide(&self, bytes: u64) {
        self.hidden.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that so many bytes of hidden references are gone, as far as they were known.
    pub fn unhide(&self, bytes: u64) {
        let less = |hidden: u64| Some(hidden.saturating_sub(bytes));
        let _ = self.hidden.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Bytes of live records that nothing is known to hide, at most what the file holds.
    pub fn live_estimate(&self) -> u64 {
        self.live().saturating_sub(self.hidden.load(Ordering::Relaxed)).min(self.size())
    }
}
