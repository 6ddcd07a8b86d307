//! The public interface of store mode.

use crate::access::{Access, Concurrent, SharedWrites};
use crate::index::Entry;
use crate::item::{Metadata, Target};
use crate::memory::UNIT_BYTES;
use crate::partition::Ahead;
use crate::partitions::Partitions;
use crate::refusing::{OutOfSpace, Refusing};
use crate::region::{Position, Region};
use crate::sync::Ordering;

use super::builder::StoreBuilder;

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Items present.
    pub items: u64,
    /// Sets refused for lack of space.
    pub refused: u64,
    /// Bytes for items.
    pub space_bytes: u64,
    /// Of these, bytes of items, including their headers and rounding.
    pub space_bytes_used: u64,
    /// Items moved so far to join free space.
    pub moved: u64,
    /// Spare buckets of the index in use.
    pub spare_buckets_used: u64,
}

/// A map in a fixed amount of memory that forgets nothing and refuses items for which it has no room: MICA's store
/// mode.
///
/// Items of all sizes share one space, in which adjacent free blocks are always joined: a store full of small items can
/// take large ones after those are removed. If only some of them are removed, a set moves others to join the free
/// space. It refuses an item for lack of space only when less than a sixty-fourth of the space is free, or less than
/// the item needs. A get costs as much as in a [`Cache`](crate::Cache), and one more access for some five percent of
/// the items, whose bucket overflowed. Access modes are those of a cache.
#[derive(Debug)]
pub struct Store<A: Access = Concurrent> {
    pub(super) partitions: Partitions<Refusing, A>,
    pub(super) settings: StoreBuilder,
}

impl Store {
    /// Settings for a new store: 64 MiB, one partition, 200 bytes of key and value.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }
}

impl<A: Access> Store<A> {
    /// Maximum bytes that the store may use.
    pub fn memory_limit(&self) -> usize {
        self.settings.memory_limit
    }

    /// Number of the partition of `key`. Under [`ConcurrentReads`](crate::ConcurrentReads), the
    /// [`StoreWriter`](crate::StoreWriter) of that partition may write it.
    pub fn partition_of(&self, key: &[u8]) -> usize {
        self.partitions.number_of(self.partitions.hash(key))
    }

    /// Which of `count` stores of equal settings, made by [`StoreBuilder::build_exclusive_each`], takes `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        self.partitions.owner_of(key, count)
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.get_into(key, &mut value).then_some(value)
    }

    /// Replaces the contents of `value` by the value of `key`; returns whether there is one. If not, the contents of
    /// `value` are unspecified.
    #[inline]
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        self.partitions.get_into(key, value).is_some()
    }

    /// Calls `take` with a copy of the value of `key`, if there is one, and returns its result. Allocates nothing for
    /// values of up to 2 KiB.
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        self.partitions.get_with(key, |_, value, _| take(value))
    }

    /// Like [`get_into`](Self::get_into), but returns the item's position: a number below 2⁴⁸ for
    /// [`get_at_into`](Self::get_at_into). The item keeps it until the next set or removal of its key.
    ///
    /// # Panics
    /// Unless the store was configured to [keep places](StoreBuilder::keep_places).
    #[inline]
    pub fn get_located_into(&self, key: &[u8], value: &mut Vec<u8>) -> Option<u64> {
        assert!(self.settings.keeps_places, "places were asked of a store that moves items");
        let hash = self.partitions.hash(key);
        let number = self.partitions.number_of(hash);
        let value_start = self.partitions.all[number].get_into(hash, key, value)?;
        // A header before the key.
        let unit = (value_start - key.len()) / UNIT_BYTES - 1;
        Some((number as u64) << u32::BITS | unit as u64)
    }

    /// Replaces the contents of `value` by the value of `key` if its item is at `place`, without consulting the index;
    /// returns whether it is. If not, the contents of `value` are unspecified. `place` may be any number.
    ///
    /// Only for a caller that knows of every set and removal of the key, as a lookaside buffer does: a value that is
    /// being changed meanwhile may be a mix of the old and the new one, and a removed item may still seem to be
    /// present.
    #[inline]
    pub fn get_at_into(&self, place: u64, key: &[u8], value: &mut Vec<u8>) -> bool {
        let Some(partition) = self.partitions.all.get((place >> u32::BITS) as usize) else { return false };
        let entry = Entry::new(1, 0, Position(u64::from(place as u32)));
        // Loads nothing out of bounds, whatever the position is.
        let stored = partition.body.get().region.site(entry).plain_item_of(key);
        stored.and_then(|stored| value.copy(stored.plain_value(key.len())?)).is_some()
    }

    /// Calls `take` for each of `keys`, in order, with its number and its value; memory accesses overlap as in
    /// [`Cache::get_many_with`](crate::Cache::get_many_with).
    pub fn get_many_with<K: AsRef<[u8]>>(&self, keys: &[K], mut take: impl FnMut(usize, Option<&[u8]>)) {
        self.partitions.get_many_with(keys, |number, item| take(number, item.map(|(_, value, _)| value)));
    }

    /// Calls `visit` with copies of key and value of every item, in no particular order. An item that is present
    /// throughout is visited once; one that is added or removed meanwhile may be visited.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        for partition in &*self.partitions.all {
            let mut from = Some(0);
            while let Some(first) = from {
                from = partition.visit_from(first, &mut |key, value, _| visit(key, value));
            }
        }
    }

    /// Statistics, summed over all partitions.
    pub fn stats(&self) -> StoreStats {
        self.partitions.all.iter().fold(StoreStats::default(), |sum, partition| {
            let (body, counters) = (partition.body.get(), &partition.counters);
            StoreStats {
                items: sum.items + counters.items(),
                refused: sum.refused + counters.refused.load(Ordering::Relaxed),
                space_bytes: sum.space_bytes + u64::from(body.region.words()) * UNIT_BYTES as u64,
                space_bytes_used: sum.space_bytes_used + body.region.used_words() * UNIT_BYTES as u64,
                moved: sum.moved + counters.moved.load(Ordering::Relaxed),
                spare_buckets_used: sum.spare_buckets_used + u64::from(body.index.spares_used()),
            }
        })
    }
}

impl<A: SharedWrites> Store<A> {
    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`OutOfSpace`]; the key keeps its former item.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let hash = self.partitions.hash(key);
        self.partitions.of(hash).set(hash, key, Ahead::Nothing, value, Metadata::default())
    }

    /// Gives each key its value, in order; memory accesses overlap.
    ///
    /// # Errors
    /// [`OutOfSpace`] for the last item that was refused; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), OutOfSpace> {
        self.partitions.set_each(items, |hash| Ok(self.partitions.of(hash)))
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        let hash = self.partitions.hash(key);
        self.partitions.of(hash).remove(hash, key)
    }
}
