//! [`Passes`]: when a chained log may be collected.

use alluvium_base::SegmentId;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Passes of a collection over a chained log. Each collects the segments that were there when it began. The next one
/// begins only when so much was written that a part of the log can be garbage again: what is left after a pass, such as
/// tombstones of items below the log, would otherwise be moved forever.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Bytes of records that were written, and of those that collections moved.
    appended: AtomicU64,
    moved: AtomicU64,
    /// Segments before this one belong to the pass.
    end: AtomicU64,
    /// Bytes that users had written when it began.
    began_at: AtomicU64,
}

impl Passes {
    /// Counts a record.
    #[inline]
    pub fn note_appended(&self, bytes: usize) {
        self.appended.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of all records that were counted.
    pub fn appended(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// Counts a record that a collection moved, and that counts as appended, too.
    pub fn note_moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Begins a pass over the segments before `end`.
    pub fn begin(&self, end: SegmentId) {
        self.end.store(end.0, Ordering::Relaxed);
        self.began_at.store(self.written(), Ordering::Relaxed);
    }

    /// Bytes that users wrote.
    fn written(&self) -> u64 {
        let moved = self.moved.load(Ordering::Relaxed);
        self.appended.load(Ordering::Relaxed).saturating_sub(moved)
    }

    /// Whether the pass has a segment left, if this is the oldest one.
    pub fn covers(&self, oldest: SegmentId) -> bool {
        oldest.0 < self.end.load(Ordering::Relaxed)
    }

    /// Whether users wrote this number of bytes since the pass began.
    pub fn have_passed(&self, bytes: f64) -> bool {
        let written = self.written().saturating_sub(self.began_at.load(Ordering::Relaxed));
        written as f64 >= bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_moved_begins_no_pass() {
        let passes = Passes::default();
        assert!(!passes.covers(SegmentId(1)) && !passes.have_passed(1.0));
        passes.note_appended(100);
        assert!(passes.have_passed(100.0));
        passes.begin(SegmentId(7));
        assert!(passes.covers(SegmentId(6)) && !passes.covers(SegmentId(7)) && !passes.have_passed(1.0));
        passes.note_appended(90);
        passes.note_moved(90);
        assert!(!passes.have_passed(1.0));
        passes.note_appended(5);
        assert!(passes.have_passed(5.0));
    }
}
