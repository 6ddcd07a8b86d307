//! The live bytes of a blob file.

use alluvium_io::sync::atomic::Ordering;

use super::file::BlobFile;

impl BlobFile {
    /// Adds a reference (its bytes) or removes one (its bytes, negative).
    pub fn add_live(&self, bytes: i64) {
        self.live.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Bytes of records, added over all references.
    pub fn live(&self) -> u64 {
        self.live.load(Ordering::Acquire).max(0) as u64
    }

    /// Remembers that a younger item hides a reference to `bytes`.
    pub fn hide(&self, bytes: u64) {
        self.hidden.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Remembers that hidden references to `bytes` were removed, as far as they were known.
    pub fn unhide(&self, bytes: u64) {
        let less = |hidden: u64| Some(hidden.saturating_sub(bytes));
        let _ = self.hidden.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Bytes of live records that are not known to be hidden; at most the size of the file.
    pub fn live_estimate(&self) -> u64 {
        self.live().saturating_sub(self.hidden.load(Ordering::Relaxed)).min(self.size())
    }
}
