//! The face of store mode.

use std::fmt;

use alluvium_base::{KeyHash, KeyHasher};

use crate::access::{Access, Concurrent};
use crate::cache::{BATCH_LEN, Builder};
use crate::error::BuildError;
use crate::index::partition_of;

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

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct StoreBuilder {
    memory_limit: usize,
    partitions: usize,
    payload_bytes_mean: usize,
    hasher: KeyHasher,
}

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
    /// Buckets of the index that overflowed ones use.
    pub spare_buckets_used: u64,
}

/// A map in a fixed amount of memory that forgets nothing and refuses what it has no room for: MICA's store mode.
///
/// Items lie in one space for all sizes, whose free neighbours are always joined: a store full of small items takes
/// large ones after those are removed. A get costs what it does in a [`Cache`](crate::Cache), and one more access for
/// some five percent of the items, whose bucket overflowed. Access modes are those of a cache.
#[derive(Debug)]
pub struct Store<A: Access = Concurrent> {
    partitions: Box<[Partition<A>]>,
    settings: StoreBuilder,
}

impl Store {
    /// Settings for a new store: 64 MiB, one partition, 200 bytes of key and value.
    pub fn builder() -> StoreBuilder {
        StoreBuilder {
            memory_limit: 64 << 20,
            partitions: 1,
            payload_bytes_mean: 200,
            hasher: Builder::default().common.hasher,
        }
    }
}

impl StoreBuilder {
    /// Resident bytes of everything.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Parts by key hash, each at most 32 GiB; at most 65,536 of them for [`Store::get_located_into`].
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.partitions = partitions;
        self
    }

    /// Bytes of key and value of an item, on average: decides the share of the index.
    pub fn payload_bytes_mean(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self
    }

    /// How keys are hashed.
    pub fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.hasher = hasher;
        self
    }

    /// A store of access mode `A`.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build_as<A: Access>(self) -> Result<Store<A>, BuildError> {
        let share = self.memory_limit.checked_div(self.partitions).ok_or(BuildError::NoPartitions)?;
        let partitions = (0..self.partitions)
            .map(|_| Partition::new(share, self.payload_bytes_mean))
            .collect::<Result<Box<[_]>, _>>()?;
        Ok(Store { partitions, settings: self })
    }

    /// A store that any thread reads and writes.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(self) -> Result<Store, BuildError> {
        self.build_as()
    }
}

impl<A: Access> Store<A> {
    #[inline(always)]
    fn hash(&self, key: &[u8]) -> KeyHash {
        self.settings.hasher.hash(key)
    }

    #[inline(always)]
    fn partition(&self, hash: KeyHash) -> &Partition<A> {
        &self.partitions[partition_of(hash, self.partitions.len())]
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

    /// Like [`get_into`](Self::get_into), and says where the item lies: a number below 2⁴⁸ for
    /// [`get_at_into`](Self::get_at_into). The item lies there until the next set or removal of its key.
    #[inline]
    pub fn get_located_into(&self, key: &[u8], value: &mut Vec<u8>) -> Option<u64> {
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
        let mut value = Vec::new();
        let mut hashes = [KeyHash::default(); BATCH_LEN];
        for (batch, keys) in keys.chunks(BATCH_LEN).enumerate() {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key.as_ref());
                self.partition(*hash).prefetch(*hash);
            }
            for &hash in &hashes[..keys.len()] {
                self.partition(hash).prefetch_items(hash, self.settings.payload_bytes_mean);
            }
            for (number, (key, &hash)) in keys.iter().zip(&hashes).enumerate() {
                let is_there = self.partition(hash).get_into(hash, key.as_ref(), &mut value).is_some();
                take(batch * BATCH_LEN + number, is_there.then_some(&value[..]));
            }
        }
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`OutOfSpace`]; what the key had stays.
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let hash = self.hash(key);
        self.partition(hash).set(hash, key, value)
    }

    /// Removes the item of `key`; whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.partition(hash).remove(hash, key)
    }

    /// Calls `visit` with key and value of every item, in no order. It must not write to the store.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], &[u8])) {
        self.partitions.iter().for_each(|partition| partition.visit(&mut visit));
    }

    /// Lets another thread become the one that writes, under [`ConcurrentReads`](crate::ConcurrentReads).
    pub fn hand_over(&self) {
        self.partitions.iter().for_each(Partition::hand_over);
    }

    /// Counts and sizes, of all partitions together.
    pub fn stats(&self) -> StoreStats {
        self.partitions.iter().map(Partition::stats).fold(StoreStats::default(), |sum, part| StoreStats {
            items: sum.items + part.items,
            refused: sum.refused + part.refused,
            space_bytes: sum.space_bytes + part.space_bytes,
            space_bytes_used: sum.space_bytes_used + part.space_bytes_used,
            spare_buckets_used: sum.spare_buckets_used + part.spare_buckets_used,
        })
    }
}
