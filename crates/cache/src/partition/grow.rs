//! An index and inline table that grow with the items, so that resident memory depends on what is stored, not on the
//! limit.
//!
//! Items spread over all buckets, so a few items would touch all of an index that is sized for the limit. It starts
//! small. When a bucket is full, and before an item is forgotten because of that, the writer makes tables of four times
//! the size over the same logs, fills them, and publishes them as a whole. Readers find every item at all times: in the
//! old tables while they are current, then in the new ones ([`Published`](crate::memory::Published)). The writer finds
//! the items by walking the old buckets, which have the same order as the new ones; their keys are scattered over the
//! logs and are prefetched.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::Entry;
use crate::index::bucket::{Bucket, WAYS};
use crate::inline::{CELL_BYTES_MAX, CELLS, InlineTable};
use crate::memory::UNIT_BYTES;
use crate::sync::Ordering;

use super::body::Body;
use super::{Counters, Partition};

/// The inline table grows at the latest when this fraction of its cells is taken.
const CELLS_TAKEN_MAX: (u64, u64) = (7, 12);

/// How many buckets ahead items are prefetched.
const BUCKETS_AHEAD: usize = 2;

impl<A: Access> Partition<A> {
    /// The first step of a write that may add an item with this hash: does what every write starts with, and makes room
    /// in the index, if it may grow.
    #[inline(always)]
    pub(super) fn begin_insert(&self, hash: KeyHash) -> &Body {
        let body = self.begin_write();
        if body.may_grow() { self.grow_for(body, hash) } else { body }
    }

    #[inline(never)]
    fn grow_for<'a>(&'a self, mut body: &'a Body, hash: KeyHash) -> &'a Body {
        while body.may_grow() && self.is_full(body, hash) {
            body = self.grow(body);
        }
        body
    }

    /// Whether there is no room for an item with this hash in its bucket, or in its inline bucket.
    fn is_full(&self, body: &Body, hash: KeyHash) -> bool {
        let bucket = body.index.bucket(body.index.place(hash));
        let is_taken = |way| {
            let entry = bucket.entry(way);
            body.log(entry).contains(entry.position())
        };
        bucket.empty_way().is_none() && (0..WAYS).all(is_taken)
            || body.inline.as_ref().is_some_and(|table| self.is_inline_full(table, hash))
    }

    /// While few cells are taken, items of full inline buckets go to the logs: they are one in a hundred, for which the
    /// logs have room.
    fn is_inline_full(&self, table: &InlineTable, hash: KeyHash) -> bool {
        let items = self.counters.inline.load(Ordering::Relaxed);
        items * CELLS_TAKEN_MAX.1 >= (table.len() * CELLS) as u64 * CELLS_TAKEN_MAX.0
            && table.spot(hash).empty_way().is_none()
    }

    /// Replaces the tables by larger ones with the same items. Takes some 25 ns per item.
    #[cold]
    fn grow<'a>(&'a self, old: &'a Body) -> &'a Body {
        let Ok(new) = old.grown() else {
            old.stop_growing();
            return old;
        };
        self.copy_entries(old, &new);
        self.copy_cells(old, &new);
        self.body.replace(new);
        let new = self.body.get();
        self.sweeper_grows(new);
        old.release_tables();
        new
    }

    fn copy_entries(&self, old: &Body, new: &Body) {
        let buckets = old.index.buckets();
        for (number, bucket) in buckets.iter().enumerate() {
            if let Some(ahead) = buckets.get(number + BUCKETS_AHEAD) {
                prefetch_keys(old, ahead);
            }
            for way in 0..WAYS {
                let entry = bucket.entry(way);
                if entry.is_empty() {
                    continue;
                }
                let Some(stored) = self.stored(old, entry) else {
                    Counters::count(&self.counters.evicted);
                    continue;
                };
                let place = new.index.place(self.hash_of(stored));
                let target = new.index.bucket(place);
                // There is no empty way only if two full old buckets meet in a new one.
                let empty = target.empty_way().unwrap_or_else(|| self.make_way(new, target));
                target.set_entry(empty, Entry::new(place.tag, entry.log(), entry.position()));
                target.counts().set(empty, bucket.counts().get(way));
            }
        }
    }

    fn copy_cells(&self, old: &Body, new: &Body) {
        let (Some(from), Some(to)) = (&old.inline, &new.inline) else { return };
        for spot in from.spots() {
            for way in spot.bucket().ways() {
                let mut bytes = [0; CELL_BYTES_MAX];
                let cell = spot.cell(way);
                let (key, rest) = bytes.split_at_mut(cell.key_len());
                let value = &mut rest[..cell.value_len()];
                cell.copy_key(key);
                cell.copy_value(value);
                let target = to.spot(self.common.hasher.hash(key));
                match target.empty_way() {
                    Some(empty) => target.put(empty, key, value),
                    None => {
                        Counters::uncount(&self.counters.inline);
                        Counters::count(&self.counters.evicted_by_index);
                    }
                }
            }
        }
    }
}

/// Starts loading the headers and keys of a bucket's items.
fn prefetch_keys(body: &Body, bucket: &Bucket) {
    for way in 0..WAYS {
        let entry = bucket.entry(way);
        if !entry.is_empty() {
            let log = body.log(entry);
            log.ring().prefetch(log.layout().unit(entry.position()), 2 * UNIT_BYTES);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::cache::Cache;
    use crate::eviction::Eviction;

    /// A hundred thousand items under a limit for millions: none is forgotten, and each keeps its metadata.
    #[test]
    fn an_index_grows_with_its_items_and_loses_none() {
        use crate::cache::SetOptions;
        for eviction in [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru] {
            for fixed in [None, Some(24)] {
                let builder = Cache::builder().memory_limit(1 << 30).eviction(eviction);
                let builder = fixed.map_or(builder.clone(), |bytes| builder.payload_bytes_fixed(bytes));
                let cache = builder.build().unwrap();
                let items = if cfg!(miri) { 2000 } else { 100_000_u32 };
                for number in 0..items {
                    let options = SetOptions { time_to_live: None, flags: number % 3 };
                    cache.set_with(&number.to_le_bytes(), &number.to_be_bytes(), options).unwrap();
                }
                for number in 0..items {
                    let found =
                        cache.get_with(&number.to_le_bytes(), |item| (item.value.to_vec(), item.flags));
                    assert_eq!(found, Some((number.to_be_bytes().to_vec(), number % 3)), "{eviction:?}");
                }
                let total = cache.stats().total();
                assert_eq!((total.items, total.evicted_by_index), (u64::from(items), 0));
                assert_eq!(cache.iter().count(), items as usize);
            }
        }
    }
}
