//! The face of store mode.

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
    /// No free block is large enough for the item, or the item is larger than any may be.
    Item,
    /// The key's chain in the index is full and there are no spare buckets: there are more items than the mean size
    /// given to the builder made room for.
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

/// Counts and sizes of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Items present.
    pub items: u64,
    /// Sets refused for lack of space.
    pub refused: u64,
    /// Bytes for items.
    pub space_bytes: u64,
    /// Of these, bytes of items, their headers and rounding included.
    pub space_bytes_used: u64,
    /// Items moved to join free space, so far.
    pub moved: u64,
    /// Buckets of the index that overflowed ones use.
    pub spare_buckets_used: u64,
}

/// A map in a fixed amount of memory that forgets nothing and refuses what it has no room for: MICA's store mode.
///
/// Items lie in one space for all sizes, whose free neighbours are always joined: a store full of small items takes
/// large ones after those are removed. Where only some of them are, a set moves others to join what is free; it refuses
/// an item for lack of space only when less than a sixty-fourth of the space is free, or less than the item needs. A
/// get costs what it does in a [`Cache`](crate::Cache), and one more access for some five percent of the items, whose
/// bucket overflowed. Access modes are those of a cache.
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

    /// Bytes that the store may use at most.
    pub fn memory_limit(&self) -> usize {
        self.settings.memory_limit
    }

    /// Number of the partition of `key`: whose [`StoreWriter`](crate::StoreWriter) may write it under
    /// [`ConcurrentReads`](crate::ConcurrentReads).
    pub fn partition_of(&self, key: &[u8]) -> usize {
        partition_of(self.hash(key), self.partitions.len())
    }

    /// Which of `count` stores of equal settings, made by [`StoreBuilder::build_exclusive_each`], is for `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        owner_of(self.hash(key), count)
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.get_into(key, &mut value).then_some(value)
    }

    /// Puts the value of `key` into `value` and says whether there is one; without one, `value` may be anything.
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

    /// Like [`get_into`](Self::get_into), and says where the item lies: a number below 2⁴⁸ for
    /// [`get_at_into`](Self::get_at_into). The item lies there until the next set or removal of its key.
    ///
    /// # Panics
    /// Unless the store was told to [keep places](StoreBuilder::keep_places).
    #[inline]
    pub fn get_located_into(&self, key: &[u8], value: &mut Vec<u8>) -> Option<u64> {
        assert!(self.settings.keeps_places, "places were asked of a store that moves items");
        let hash = self.hash(key);
        let number = partition_of(hash, self.partitions.len());
        let unit = self.partitions[number].get_into(hash, key, value)?;
        Some((number as u64) << u32::BITS | u64::from(unit))
    }

    /// Puts the value of `key` into `value` if its item lies at `place`, without a look at the index; whether it does.
    /// Without, `value` may be anything, and `place` may be any number.
    ///
    /// Only for a caller who knows of every set and removal of the key, as a lookaside buffer does: an item that is
    /// being changed meanwhile may be half of one and half of another, and a removed one may still seem to be there.
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

    /// Takes so many operations on keys through the stages; `last` is what remains when their memory is at hand.
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

    /// Gives each key its value, in order, where `own` gives the partition of a hash to who may write it.
    ///
    /// # Errors
    /// That of the last item that was refused; all others are set.
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

    /// Calls `visit` with copies of key and value of every item, in no order. What is there throughout is visited once;
    /// what comes or goes meanwhile, perhaps.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        self.partitions.iter().for_each(|partition| partition.visit(&mut visit));
    }

    /// Counts and sizes, of all partitions together.
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
    /// [`OutOfSpace`]; what the key had stays.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let hash = self.hash(key);
        self.partition(hash).set(hash, key, value)
    }

    /// Gives each key its value, in order; memory accesses overlap.
    ///
    /// # Errors
    /// [`OutOfSpace`] of the last item that was refused; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), OutOfSpace> {
        self.set_each(items, |hash| Ok(self.partition(hash)))
    }

    /// Removes the item of `key`; whether there was one.
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

/// A get of more than a glance.
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
