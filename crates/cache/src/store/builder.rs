//! The settings of a store.

use alluvium_base::KeyHasher;

use crate::access::{Access, Concurrent, Exclusive};
use crate::error::BuildError;
use crate::hasher::Hasher;
use crate::item::ITEM_WORDS_MAX;
use crate::limits::{self, Numbers, PARTITIONS_MAX};
use crate::memory::UNIT_BYTES;
use crate::partition::{Common, Partition};
use crate::partitions::Partitions;
use crate::refusing::{Sizes, bytes_for};

use super::handle::Store;

/// Maximum bytes that positions within a partition can address.
const PARTITION_BYTES_MAX: usize = 32 << 30;

/// Maximum bytes of key and value of an item.
const PAYLOAD_BYTES_MAX: usize = (ITEM_WORDS_MAX - 1) * UNIT_BYTES;

/// Settings of a store.
#[derive(Clone, Debug)]
pub struct StoreBuilder {
    pub(super) memory_limit: usize,
    pub(super) partitions: usize,
    pub(super) payload_bytes_mean: usize,
    common: Common,
    pub(super) keeps_places: bool,
}

impl Default for StoreBuilder {
    fn default() -> Self {
        Self {
            memory_limit: 64 << 20,
            partitions: 1,
            payload_bytes_mean: 200,
            common: Common::default(),
            keeps_places: false,
        }
    }
}

impl StoreBuilder {
    /// Resident bytes of everything, at most 16 TiB and 32 GiB per partition. Memory becomes resident as items are
    /// added: they fill their space from its start, 8 KiB of each 128 MiB of it are marks, and the index grows with
    /// them, by a factor of four whenever it is full.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Number of parts chosen by key hash, each at most 32 GiB; at most 4,096.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.partitions = partitions;
        self
    }

    /// Bytes of key and value of an item, on average: determines the share of the index.
    pub fn payload_bytes_mean(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self
    }

    /// The hash function for keys; see [`Cache`'s](crate::Builder::hasher).
    pub fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.common.hasher = Hasher::Given(hasher);
        self
    }

    /// Sets the memory limit to what `items` items of exactly [`payload_bytes_mean`](Self::payload_bytes_mean) bytes
    /// need in the partitions; set those two first. If that exceeds the maximum, the limit becomes `usize::MAX`, which
    /// [`build`](Self::build) refuses.
    pub fn room_for(mut self, items: usize) -> Self {
        let parts = self.partitions.clamp(1, PARTITIONS_MAX);
        if limits::are_too_many(items, self.payload_bytes_mean) {
            self.memory_limit = usize::MAX;
            return self;
        }
        // Partitions get the same memory but, by chance, slightly different numbers of items.
        let spread = if parts > 1 { 4 * items.div_ceil(parts).isqrt() } else { 0 };
        let each = items.div_ceil(parts) + spread;
        self.memory_limit = parts * bytes_for::<Concurrent>(each, self.payload_bytes_mean);
        self
    }

    /// Items keep their position until their key is set or removed, as [`Store::get_located_into`] requires. By default
    /// a set that finds only free pieces that are too small moves other items to join them; with this setting, small
    /// free pieces are lost to larger items.
    pub fn keep_places(mut self) -> Self {
        self.keeps_places = true;
        self
    }

    /// The numbers with which `owners` stores that share the limit are checked.
    fn numbers(&self, owners: usize) -> Numbers {
        Numbers {
            memory_limit: self.memory_limit,
            owners,
            partitions: self.partitions,
            payload: self.payload_bytes_mean,
            payload_max: PAYLOAD_BYTES_MAX,
            partition_bytes_max: PARTITION_BYTES_MAX,
        }
    }

    /// The sizes of a partition of `share` bytes.
    fn sizes<A: Access>(&self, share: usize) -> Option<Sizes> {
        Sizes::of::<A>(share, self.payload_bytes_mean)
    }

    /// A store of access mode `A`.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build_as<A: Access>(self) -> Result<Store<A>, BuildError> {
        let sizes = self.numbers(1).share_out(|share| self.sizes::<A>(share))?;
        let common = self.common.clone().started();
        let partition = |_| Partition::refusing(common.clone(), sizes, self.keeps_places);
        let all = (0..self.partitions).map(partition).collect::<Result<A::Parts<_>, _>>()?;
        Ok(Store { partitions: Partitions { all, hasher: common.hasher }, settings: self })
    }

    /// `count` stores that share the memory limit and the hash function, and each take the keys that
    /// [`Store::owner_of`] assigns to them: one for each of `count` threads.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build_exclusive_each(self, count: usize) -> Result<Vec<Store<Exclusive>>, BuildError> {
        self.numbers(count).share_out(|share| self.sizes::<Exclusive>(share))?;
        let share = self.memory_limit / count;
        (0..count).map(|_| self.clone().memory_limit(share).build_as()).collect()
    }

    /// A store that any thread reads and writes.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(self) -> Result<Store, BuildError> {
        self.build_as()
    }
}
