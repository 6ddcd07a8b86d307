//! An index and inline table that grow with the items, so that resident memory depends on what is stored, not on the
//! limit.
//!
//! Items spread over all buckets, so a few items would touch all of an index that is sized for the limit. It starts
//! small. When a chain is full, and before an item is forgotten or refused because of that, the writer makes tables of
//! four times the size over the same region, fills them, and publishes them as a whole. Readers find every item at all
//! times: in the old tables while they are current, then in the new ones
//! ([`Published`](crate::memory::Published)). The writer finds the items by walking the old chains, which have the same
//! order as the new ones; their keys are scattered over the region and are prefetched.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::Index;
use crate::inline::{CELL_BYTES_MAX, CELLS, InlineTable};
use crate::memory::UNIT_BYTES;
use crate::region::Region;
use crate::sync::Ordering;

use super::body::Body;
use super::policy::Policy;
use super::{Counters, Partition};

/// The inline table grows at the latest when this fraction of its cells is taken.
const CELLS_TAKEN_MAX: (u64, u64) = (7, 12);

/// How many chains ahead items are prefetched.
const CHAINS_AHEAD: usize = 2;

impl<P: Policy, A: Access> Partition<P, A> {
    /// The first step of a write that may add an item with this hash: does what every write starts with, and makes room
    /// in the index, if it may grow.
    #[inline(always)]
    pub fn begin_insert(&self, hash: KeyHash) -> &Body<P> {
        let body = self.begin_write();
        if body.may_grow() { self.grow_for(body, hash) } else { body }
    }

    #[inline(never)]
    fn grow_for<'a>(&'a self, mut body: &'a Body<P>, hash: KeyHash) -> &'a Body<P> {
        while body.may_grow() && self.is_full(body, hash) {
            body = self.grow(body);
        }
        body
    }

    /// Whether there is no room for an item with this hash in its chain, or in its inline bucket.
    fn is_full(&self, body: &Body<P>, hash: KeyHash) -> bool {
        let chain = body.index.place(hash).bucket;
        body.index.is_full_at(chain)
            && body.index.entries(chain).all(|(_, entry)| body.region.contains(entry))
            || body.cells().is_some_and(|table| self.is_inline_full(table, hash))
    }

    /// While few cells are taken, items of full inline buckets go to the region: they are one in a hundred, for which
    /// it has room.
    fn is_inline_full(&self, table: &InlineTable, hash: KeyHash) -> bool {
        let items = self.counters.inline.load(Ordering::Relaxed);
        items * CELLS_TAKEN_MAX.1 >= (table.len() * CELLS) as u64 * CELLS_TAKEN_MAX.0
            && table.spot(hash).empty_way().is_none()
    }

    /// Replaces the tables by larger ones with the same items. Takes some 25 ns per item.
    #[cold]
    fn grow<'a>(&'a self, old: &'a Body<P>) -> &'a Body<P> {
        let larger = old.grown().ok().filter(|new| self.copy_entries(old, new).is_ok());
        let Some(new) = larger else {
            old.stop_growing();
            return old;
        };
        self.copy_cells(old, &new);
        self.body.replace(new);
        let new = self.body.get();
        self.policy.on_growth(new);
        old.release_tables();
        new
    }

    fn copy_entries(&self, old: &Body<P>, new: &Body<P>) -> Result<(), P::Refusal> {
        let chains = old.index.len();
        for chain in 0..chains {
            if chain + CHAINS_AHEAD < chains {
                // The headers and keys of the items.
                let ahead = old.index.entries(chain + CHAINS_AHEAD);
                ahead.for_each(|(_, entry)| old.region.site(entry).prefetch(2 * UNIT_BYTES));
            }
            for (slot, entry) in old.index.entries(chain) {
                let Some(stored) = old.region.item(entry) else {
                    Counters::count(&self.counters.evicted);
                    continue;
                };
                let place = new.index.place(self.hash_of(stored));
                let target = match new.index.vacancy(place.bucket) {
                    Some(vacant) => vacant,
                    // Only if two full old buckets meet in a new one.
                    None => P::make_way(self, new, place.bucket)?,
                };
                new.index.put(place.bucket, target, entry, old.index.count(slot));
            }
        }
        Ok(())
    }

    fn copy_cells(&self, old: &Body<P>, new: &Body<P>) {
        let (Some(from), Some(to)) = (old.cells(), new.cells()) else { return };
        for spot in from.spots() {
            for way in spot.bucket().ways() {
                let mut bytes = [0; CELL_BYTES_MAX];
                let cell = spot.cell(way);
                let (key, rest) = bytes.split_at_mut(cell.key_len());
                let value = &mut rest[..cell.value().len];
                cell.copy_key(key);
                cell.value().copy_out(value);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::cache::Cache;
    use crate::eviction::Eviction;
    use crate::store::Store;

    /// A hundred thousand items under a limit for millions: none is forgotten, and each keeps its metadata.
    #[test]
    fn an_index_grows_with_its_items_and_loses_none() {
        use crate::cache::SetOptions;
        for eviction in [Eviction::S3Fifo, Eviction::Fifo, Eviction::Lru, Eviction::ApproximateLru] {
            for fixed in [None, Some(24)] {
                let builder = Cache::builder().memory_limit(1 << 30).eviction(eviction);
                let builder = fixed.map_or(builder.clone(), |bytes| builder.payload_bytes_fixed(bytes));
                let cache = builder.build().unwrap();
                let items = 100_000_u32;
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

    /// A store of as many items as there is room for: the index grows several times on the way, and no item is lost.
    #[test]
    fn an_index_of_a_store_grows_with_its_items_and_loses_none() {
        let items = if cfg!(miri) { 600 } else { 300_000_u32 };
        let store = Store::builder().payload_bytes_mean(8).room_for(items as usize).build().unwrap();
        for number in 0..items {
            assert_eq!(store.set(&number.to_le_bytes(), &number.to_be_bytes()), Ok(()), "{number}");
        }
        for number in 0..items {
            assert_eq!(store.get(&number.to_le_bytes()), Some(number.to_be_bytes().to_vec()));
        }
        let mut visited = 0;
        store.for_each(|_, _| visited += 1);
        assert_eq!((visited, store.stats().items), (items, u64::from(items)));
        assert!((0..items).all(|number| store.remove(&number.to_le_bytes())));
        let stats = store.stats();
        assert_eq!((stats.items, stats.space_bytes_used, stats.spare_buckets_used), (0, 0, 0));
    }
}
