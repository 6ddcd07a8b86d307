//! Changes of the index by the only writer.

use std::mem;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::eviction::Eviction;
use crate::index::bucket::{Bucket, WAYS};
use crate::index::{Entry, Versioned};
use crate::sync::AtomicU64;

use super::body::{Body, Found};
use super::{Counters, Partition};

/// A change of a bucket that is in progress.
///
/// A change never calls code of the user, so none should end by a panic. One that does may leave the bucket's items in
/// any state, and readers would wait for its end forever. So in that case the whole bucket is forgotten and readers
/// continue.
pub(super) struct Changing<'a, A: Access, B: Versioned> {
    partition: &'a Partition<A>,
    bucket: &'a B,
}

impl<A: Access, B: Versioned> Changing<'_, A, B> {
    /// Ends the change normally.
    #[inline(always)]
    pub fn end(self) {
        self.end_version();
        mem::forget(self);
    }

    #[inline(always)]
    fn end_version(&self) {
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            self.bucket.version().end_change();
        }
    }
}

impl<A: Access, B: Versioned> Drop for Changing<'_, A, B> {
    #[cold]
    fn drop(&mut self) {
        let counters = &self.partition.counters;
        for _ in 0..self.bucket.forget_all() {
            Counters::count(&counters.evicted_by_index);
            if B::IS_INLINE {
                Counters::uncount(&counters.inline);
            }
        }
        self.end_version();
    }
}

impl<A: Access> Partition<A> {
    /// Changes a bucket or one of its items; readers see the whole change or nothing of it.
    #[inline(always)]
    pub(super) fn change<T>(&self, bucket: &impl Versioned, change: impl FnOnce() -> T) -> T {
        let changing = self.begin_change(bucket);
        let outcome = change();
        changing.end();
        outcome
    }

    /// Begins a [`change`](Self::change).
    #[inline(always)]
    pub(super) fn begin_change<'a, B: Versioned>(&'a self, bucket: &'a B) -> Changing<'a, A, B> {
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            bucket.version().begin_change();
        }
        Changing { partition: self, bucket }
    }

    /// Removes an entry and counts it in `reason`.
    #[inline(always)]
    pub(super) fn unlink(&self, bucket: &Bucket, way: usize, reason: &AtomicU64) {
        self.change(bucket, || {
            bucket.set_entry(way, Entry::EMPTY);
            bucket.counts().set(way, 0);
        });
        Counters::count(reason);
    }

    /// Stores a key's new entry, in place of `before` if that is still present.
    #[inline(always)]
    pub(super) fn link(&self, body: &Body, bucket: &Bucket, before: Option<(usize, u32)>, entry: Entry) {
        let (way, count) = match before {
            Some(before) => {
                Counters::count(&self.counters.replaced);
                before
            }
            None => {
                let way = bucket.empty_way().unwrap_or_else(|| self.make_way(body, bucket));
                Counters::count(&self.counters.inserted);
                (way, 0)
            }
        };
        self.change(bucket, || {
            bucket.set_entry(way, entry);
            bucket.counts().set(way, count);
        });
    }

    /// Chooses which entry of a full bucket is forgotten: one whose item is gone, otherwise the least accessed,
    /// otherwise the one whose item would be evicted first.
    #[cold]
    pub(super) fn make_way(&self, body: &Body, bucket: &Bucket) -> usize {
        let counts = matches!(self.common.eviction, Eviction::S3Fifo | Eviction::ApproximateLru);
        let (way, is_there) = (0..WAYS)
            .map(|way| {
                let entry = bucket.entry(way);
                let log = body.log(entry);
                if !log.contains(entry.position()) {
                    return (way, (false, 0, 0));
                }
                let count = if counts { bucket.counts().get(way) } else { 0 };
                (way, (true, count, log.layout().distance(log.head(), entry.position())))
            })
            .min_by_key(|&(_, rank)| rank)
            .map_or((0, false), |(way, (is_there, ..))| (way, is_there));
        let reason = if is_there { &self.counters.evicted_by_index } else { &self.counters.evicted };
        self.unlink(bucket, way, reason);
        way
    }

    /// The way of an entry found earlier, if it is still the same; an item that moved meanwhile is looked up by key.
    #[inline(always)]
    pub(super) fn find_again<'a>(
        &self,
        found: &Found<'a>,
        key: &[u8],
        place: crate::index::Place,
    ) -> Option<Found<'a>> {
        if found.bucket.entry(found.way) == found.entry {
            return Some(*found);
        }
        found.body.find(place, key)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use alluvium_base::KeyHash;
    use alluvium_io::SystemClock;

    use super::*;
    use crate::access::Concurrent;
    use crate::hasher::Hasher;
    use crate::item::Metadata;
    use crate::partition::{Ahead, Common, Purpose, Shape};

    const ITEMS: u32 = 500;

    fn partition(cell_payload: Option<usize>) -> Partition<Concurrent> {
        let purpose = Purpose { payload: 16, cell_payload, item_bytes_max: 1 << 16, has_probation: true };
        let common = Common {
            hasher: Hasher::default(),
            eviction: Eviction::S3Fifo,
            clock: Arc::new(SystemClock::default()),
            cache_number: 0,
            epoch_ms: 0,
            position_bits: crate::log::POSITION_BITS,
        };
        Partition::new(common, Shape::within(1 << 20, purpose).unwrap()).unwrap()
    }

    fn hash(partition: &Partition<Concurrent>, number: u32) -> KeyHash {
        partition.common.hasher.hash(&number.to_le_bytes())
    }

    fn set(partition: &Partition<Concurrent>, number: u32) {
        let key = number.to_le_bytes();
        let hash = hash(partition, number);
        partition.set(hash, &key, Ahead::Nothing, &key, Metadata::default()).unwrap();
    }

    fn present(partition: &Partition<Concurrent>) -> u64 {
        let mut found = 0;
        for number in 0..ITEMS {
            let key = number.to_le_bytes();
            let value = partition.read(hash(partition, number), &key, 0, |source, _| {
                let mut value = [0; 4];
                source.copy_value(&mut value);
                value
            });
            assert!(value.is_none_or(|value| value == key));
            found += u64::from(value.is_some());
        }
        found
    }

    /// A change of the bucket of item 7 writes half of something and panics.
    fn panic_within(partition: &Partition<Concurrent>, bucket: &impl Versioned) {
        let change = || partition.change(bucket, || panic!("in the middle"));
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
    }

    fn goes_on_without_the_bucket(partition: &Partition<Concurrent>, hurt: impl Fn()) {
        (0..ITEMS).for_each(|number| set(partition, number));
        assert_eq!(present(partition), u64::from(ITEMS));
        hurt();
        // No reader waits for the end of the change, and no item is half of another.
        let left = present(partition);
        assert!((u64::from(ITEMS) - 30..u64::from(ITEMS)).contains(&left), "{left} items");
        assert_eq!(partition.counters.items(), left);
        assert_eq!(partition.stats().items, left);
        (0..ITEMS).for_each(|number| set(partition, number));
        assert_eq!(present(partition), u64::from(ITEMS));
    }

    #[test]
    fn a_panic_within_a_change_costs_its_bucket_and_stops_no_reader() {
        let partition = partition(None);
        goes_on_without_the_bucket(&partition, || {
            let body = partition.current_body();
            panic_within(&partition, body.index.bucket(body.index.place(hash(&partition, 7))));
        });
    }

    #[test]
    fn a_panic_within_a_change_of_an_inline_bucket_stops_no_reader() {
        let partition = self::partition(Some(16));
        goes_on_without_the_bucket(&partition, || {
            let table = partition.current_body().inline.as_ref().unwrap();
            panic_within(&partition, table.spot(hash(&partition, 7)).bucket());
        });
        assert_eq!(partition.stats().inline_items, u64::from(ITEMS));
    }
}
