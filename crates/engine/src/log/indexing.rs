//! [`Indexing`]: readers see all items of a batch or none.
//!
//! A batch is indexed item by item, under the locks of the shards of its keys, and readers take no locks. So a reader
//! that finds an item of a batch under way waits until all items of the batch are indexed: what is read afterwards
//! is from after the batch. The thread that indexes a batch waits for no reader.

use std::ops::Range;

use alluvium_io::sync::atomic::{AtomicUsize, Ordering};
use alluvium_io::sync::{Condvar, Mutex, MutexGuard};

/// The batches of one segment that are being indexed.
#[derive(Debug, Default)]
pub(crate) struct Indexing {
    /// Number of ranges. Readers look at it first.
    batches: AtomicUsize,
    /// The offsets of the batches' items.
    ranges: Mutex<Vec<Range<u64>>>,
    ended: Condvar,
}

/// A batch under way; it is visible when this is dropped.
#[derive(Debug)]
pub(crate) struct IndexedBatch<'a> {
    indexing: &'a Indexing,
    range: Range<u64>,
}

impl Indexing {
    fn ranges(&self) -> MutexGuard<'_, Vec<Range<u64>>> {
        self.ranges.lock().expect("no panic while held")
    }

    /// Declares that the items in this range of offsets belong together. The caller indexes none of them before.
    pub fn begin(&self, range: Range<u64>) -> IndexedBatch<'_> {
        self.ranges().push(range.clone());
        self.batches.fetch_add(1, Ordering::AcqRel);
        IndexedBatch { indexing: self, range }
    }

    /// Waits until the batch of the item at `offset`, which was found in the index, is visible as a whole.
    #[inline]
    pub fn wait(&self, offset: u32) {
        // The entry was written after the count was raised, so a reader that has found one sees the other.
        if self.batches.load(Ordering::Acquire) > 0 {
            self.wait_for_batch(u64::from(offset));
        }
    }

    #[cold]
    fn wait_for_batch(&self, offset: u64) {
        let mut ranges = self.ranges();
        while ranges.iter().any(|range| range.contains(&offset)) {
            ranges = self.ended.wait(ranges).expect("no panic while held");
        }
    }
}

impl Drop for IndexedBatch<'_> {
    fn drop(&mut self) {
        let mut ranges = self.indexing.ranges();
        let at = ranges.iter().position(|range| *range == self.range);
        ranges.swap_remove(at.expect("it was added"));
        self.indexing.batches.fetch_sub(1, Ordering::AcqRel);
        drop(ranges);
        self.indexing.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_waits_for_the_batch_of_its_item_only() {
        let indexing = Indexing::default();
        let batch = indexing.begin(100..200);
        let other = indexing.begin(300..400);
        indexing.wait(99);
        indexing.wait(200);
        drop(other);
        indexing.wait(300);
        let is_visible = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                indexing.wait(150);
                assert_eq!(is_visible.load(Ordering::Acquire), 1);
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            is_visible.store(1, Ordering::Release);
            drop(batch);
        });
        indexing.wait(150);
    }
}
