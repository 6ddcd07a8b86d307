//! Counters by which a reader detects that an entry with its tag was moved or removed during a lookup.
//!
//! The writer moves an entry from slot S to slot D in this order, every store releasing:
//!
//! 1. offset and tag into D, 2. count, 3. empty S, 4. count. Only then may S be filled again.
//!
//! A reader loads the counter, tags and offsets of both buckets, and the counter again, every load but the last
//! acquiring, and repeats when the two counts differ. With equal counts:
//!
//! - *It has not missed the entry.* Had it read D before step 1 and S after step 3, the second count would include
//!   step 2 (it saw step 3) and the first would not (else it had seen step 1).
//! - *No offset belongs to another tag.* Had it read the tag of S before step 3 and an offset stored after step 4, the
//!   second count would include step 4 and the first would not (else it had seen step 3).
//!
//! A removal is steps 3 and 4. Neither side waits for the other: a reader repeats only if the writer made progress, and
//! only for an entry of its stripe, whose move takes a few nanoseconds. Counts wrap: a reader would miss a change only
//! if exactly 2^32 counts fell within one lookup.

use crate::sync::{AtomicU32, Ordering};

const STRIPES_MAX: u32 = 64;
const BUCKETS_PER_STRIPE: u32 = 64;

/// One counter per stripe of tags. Striped by tag and not by bucket, because an entry keeps its tag when it moves: one
/// counter guards both buckets of a lookup.
pub(super) struct Versions {
    stripes: Box<[AtomicU32]>,
}

/// A stripe's count when a reader began.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(u32);

impl Versions {
    /// Counters for a table of `bucket_count` buckets: a power of two of them, at most 64 and 0.3 % of the table.
    pub fn new(bucket_count: u32) -> Self {
        let stripes = (bucket_count / BUCKETS_PER_STRIPE).clamp(1, STRIPES_MAX).next_power_of_two();
        Self { stripes: (0..stripes).map(|_| AtomicU32::new(0)).collect() }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.stripes)
    }

    /// Before a reader's first load. Acquire: pairs with the release in [`count`](Self::count).
    #[inline(always)]
    pub fn begin(&self, tag: u16) -> Version {
        Version(self.stripe(tag).load(Ordering::Acquire))
    }

    /// After a reader's last load: whether nothing of this stripe moved. Relaxed is enough, because the loads before it
    /// acquire and so stay before it.
    #[inline(always)]
    pub fn is_current(&self, tag: u16, begun: Version) -> bool {
        self.stripe(tag).load(Ordering::Relaxed) == begun.0
    }

    /// Writer only: announces a step in moving an entry with `tag`.
    #[inline(always)]
    pub fn count(&self, tag: u16) {
        let stripe = self.stripe(tag);
        stripe.store(stripe.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    #[inline(always)]
    fn stripe(&self, tag: u16) -> &AtomicU32 {
        &self.stripes[tag as usize & (self.stripes.len() - 1)]
    }
}
