//! The public interface of store mode.

use std::fmt;

use alluvium_base::KeyHash;

use crate::access::{Access, Concurrent, SharedWrites};
use crate::cache::Scratch;
use crate::index::{owner_of, partition_of};
use crate::item::{Glance, Room, room};
use crate::pipeline;

use super::builder::StoreBuilder;
use super::partition::Partition;

/// Why a store refuses an item. Nothing was changed; removing items helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutOfSpace {
    /// No free block is large enough for the item, or the item exceeds the maximum size.
    Item,
    /// The key's chain in the index is full and there are no spare buckets: there are more items than the mean size
    /// given to the builder allowed for.
    Index,
}

impl fmt::Display for OutOfSpace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item => write!(out, "the store has no free space large enough for the item"),
            Self::Index => write!(out, "the store's index has no room for another item"),
        }
    }
}

impl std::error::Error for OutOfSpace {}

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
    pub(super) partitions: A::Parts<Partition<A>>,
    pub(super) settings: StoreBuilder,
}

impl Store {
    /// Settings for a new store: 64 MiB, one partition, 200 bytes of key and value.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }
}

impl<A: Access> Store<A> {
    #[inline(always)]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        self.settings.hasher.hash(key)
    }

    #[inline(always)]
    fn partition(&self, hash: KeyHash) -> &Partition<A> {
        &self.partitions[partition_of(hash, self.partitions.len())]
    }

    /// Maximum bytes that the store may use.
    pub fn memory_limit(&self) -> usize {
        self.settings.memory_limit
    }

    /// Number of the partition of `key`. Under [`ConcurrentReads`](crate::ConcurrentReads), the
    /// [`StoreWriter`](crate::StoreWriter) of that partition may write it.
    pub fn partition_of(&self, key: &[u8]) -> usize {
        partition_of(self.hash(key), self.partitions.len())
    }

    /// Which of `count` stores of equal settings, made by [`StoreBuilder::build_exclusive_each`], takes `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        owner_of(self.hash(key), count)
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
        let hash = self.hash(key);
        self.partition(hash).get_into(hash, key, value).is_some()
    }

    /// Calls `take` with a copy of the value of `key`, if there is one, and returns its result. Allocates nothing for
    /// values of up to 2 KiB.
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let hash = self.hash(key);
        get_hashed(self.partition(hash), hash, key, &mut room(), take)
    }

    /// Like [`get_into`](Self::get_into), but returns the item's position: a number below 2⁴⁸ for
    /// [`get_at_into`](Self::get_at_into). The item keeps it until the next set or removal of its key.
    ///
    /// # Panics
    /// Unless the store was configured to [keep places](StoreBuilder::keep_places).
    #[inline]
    pub fn get_located_into(&self, key: &[u8], value: &mut Vec<u8>) -> Option<u64> {
        assert!(self.settings.keeps_places, "places were asked of a store that moves items");
        let hash = self.hash(key);
        let number = partition_of(hash, self.partitions.len());
        let unit = self.partitions[number].get_into(hash, key, value)?;
        Some((number as u64) << u32::BITS | u64::from(unit))
    }

    /// Replaces the contents of `value` by the value of `key` if its item is at `place`, without consulting the index;
    /// returns whether it is. If not, the contents of `value` are unspecified. `place` may be any number.
    ///
    /// Only for a caller that knows of every set and removal of the key, as a lookaside buffer does: a value that is
    /// being changed meanwhile may be a mix of the old and the new one, and a removed item may still seem to be
    /// present.
    #[inline]
    pub fn get_at_into(&self, place: u64, key: &[u8], value: &mut Vec<u8>) -> bool {
        let partition = self.partitions.get((place >> u32::BITS) as usize);
        partition.is_some_and(|partition| partition.get_at_into(place as u32, key, value))
    }

    /// Calls `take` for each of `keys`, in order, with its number and its value; memory accesses overlap as in
    /// [`Cache::get_many_with`](crate::Cache::get_many_with).
    pub fn get_many_with<K: AsRef<[u8]>>(&self, keys: &[K], mut take: impl FnMut(usize, Option<&[u8]>)) {
        let mut room = room();
        let key = |number: usize| keys[number].as_ref();
        self.in_stages(keys.len(), key, |number, hash| {
            let outcome = get_hashed(self.partition(hash), hash, key(number), &mut room, |value| {
                take(number, Some(value))
            });
            if outcome.is_none() {
                take(number, None);
            }
        });
    }

    /// Takes `count` operations on keys through the stages; `last` does the rest once their memory is in the cache.
    #[inline(always)]
    fn in_stages<'k>(
        &self,
        count: usize,
        key: impl Fn(usize) -> &'k [u8],
        mut last: impl FnMut(usize, KeyHash),
    ) {
        let payload = self.settings.payload_bytes_mean;
        pipeline::run(
            count,
            |number| {
                let hash = self.hash(key(number));
                self.partition(hash).prefetch(hash);
                hash
            },
            |hash: &mut KeyHash| self.partition(*hash).prefetch_items(*hash, payload),
            |_| {},
            &mut last,
        );
    }

    /// Gives each key its value, in order; `own` returns the partition of a hash if the caller may write it.
    ///
    /// # Errors
    /// The error of the last item that was refused; all others are set.
    #[inline(always)]
    pub(super) fn set_each<'p, K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<OutOfSpace>>(
        &'p self,
        items: &[(K, V)],
        own: impl Fn(KeyHash) -> Result<&'p Partition<A>, E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        let key = |number: usize| {
            let (key, _) = &items[number];
            key.as_ref()
        };
        self.in_stages(items.len(), key, |number, hash| {
            let set = own(hash).and_then(|partition| {
                partition.set(hash, key(number), items[number].1.as_ref()).map_err(E::from)
            });
            if set.is_err() {
                outcome = set;
            }
        });
        outcome
    }

    /// Calls `visit` with copies of key and value of every item, in no particular order. An item that is present
    /// throughout is visited once; one that is added or removed meanwhile may be visited.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        self.partitions.iter().for_each(|partition| partition.visit(&mut visit));
    }

    /// Statistics, summed over all partitions.
    pub fn stats(&self) -> StoreStats {
        self.partitions.iter().map(Partition::stats).fold(StoreStats::default(), |sum, part| StoreStats {
            items: sum.items + part.items,
            refused: sum.refused + part.refused,
            space_bytes: sum.space_bytes + part.space_bytes,
            space_bytes_used: sum.space_bytes_used + part.space_bytes_used,
            moved: sum.moved + part.moved,
            spare_buckets_used: sum.spare_buckets_used + part.spare_buckets_used,
        })
    }
}

impl<A: SharedWrites> Store<A> {
    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`OutOfSpace`]; the key keeps its former item.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let hash = self.hash(key);
        self.partition(hash).set(hash, key, value)
    }

    /// Gives each key its value, in order; memory accesses overlap.
    ///
    /// # Errors
    /// [`OutOfSpace`] for the last item that was refused; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), OutOfSpace> {
        self.set_each(items, |hash| Ok(self.partition(hash)))
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.partition(hash).remove(hash, key)
    }
}

#[inline(always)]
fn get_hashed<A: Access, T>(
    partition: &Partition<A>,
    hash: KeyHash,
    key: &[u8],
    room: &mut Room,
    take: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    match partition.glance(hash, key, room) {
        Glance::Hit(value) => Some(take(value)),
        Glance::Miss => None,
        Glance::Unusual => get_unusual(partition, hash, key, take),
    }
}

/// A get for which a glance does not suffice.
#[inline(never)]
fn get_unusual<A: Access, T>(
    partition: &Partition<A>,
    hash: KeyHash,
    key: &[u8],
    take: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    let mut scratch = Scratch::new();
    partition.get_scratch(hash, key, &mut scratch).then(|| scratch.lend(take))
}
