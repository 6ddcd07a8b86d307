//! Index and inline table that grow with the items: what is stored, and not the limit, decides what is resident.
//!
//! Items spread over all buckets, so an index for all items that a limit allows would be touched everywhere by few. It
//! begins small, and when a bucket is full, before an item is forgotten for that, the writer makes tables of four times
//! the size over the same logs, fills them, and publishes them whole. Readers find every item throughout: in the old
//! tables while they are current, then in the new ones ([`Published`](crate::memory::Published)). Items are found by
//! walking the old buckets, whose order is that of the new ones; their keys lie anywhere, and are loaded ahead.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::Entry;
use crate::index::bucket::{Bucket, WAYS};
use crate::inline::{CELL_BYTES_MAX, CELLS, InlineTable};
use crate::memory::UNIT_BYTES;
use crate::sync::Ordering;

use super::body::Body;
use super::{Counters, Partition};

/// Share of the cells that are taken when the inline table grows at last, as a fraction.
const CELLS_TAKEN_MAX: (u64, u64) = (7, 12);

/// Buckets ahead whose items are loaded in advance.
const BUCKETS_AHEAD: usize = 2;

impl<A: Access> Partition<A> {
    /// What a write begins with that may add an item of this hash: that of every write, and an index with room for it,
    /// if it may grow.
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

    /// Whether an item of this hash has no place in its bucket, or in its inline bucket.
    fn is_full(&self, body: &Body, hash: KeyHash) -> bool {
        let bucket = body.index.bucket(body.index.place(hash));
        let is_taken = |way| {
            let entry = bucket.entry(way);
            body.log(entry).contains(entry.position())
        };
        bucket.empty_way().is_none() && (0..WAYS).all(is_taken)
            || body.inline.as_ref().is_some_and(|table| self.is_inline_full(table, hash))
    }

    /// Items of full buckets go to the logs while the others are few, where they are one in a hundred and have room.
    fn is_inline_full(&self, table: &InlineTable, hash: KeyHash) -> bool {
        let items = self.counters.inline.load(Ordering::Relaxed);
        items * CELLS_TAKEN_MAX.1 >= (table.len() * CELLS) as u64 * CELLS_TAKEN_MAX.0
            && table.spot(hash).empty_way().is_none()
    }

    /// Replaces the tables by larger ones with the same items. Takes some 25 ns an item.
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
                // Only where two old buckets, both full, meet in a new one, is there no way left.
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

    /// A hundred thousand items under a limit for millions: none is forgotten, and each comes along with its metadata.
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
