//! Operations on single keys.

use std::time::Duration;

use alluvium_base::KeyHash;

use crate::access::{Access, Concurrent, SharedWrites};
use crate::error::TooLarge;
use crate::index::{owner_of, partition_of};
use crate::item::{Glance, ItemView, Metadata, Room, room};
use crate::partition::{Ahead, Partition};

use super::builder::Builder;
use super::keyed::Keyed;
use super::scratch::Scratch;

/// A cache in memory: keys of up to 64 KiB, values of up to a quarter of a partition.
///
/// An item may be forgotten at any time after it was set; an item that is found has the value that was set last. The
/// mode `A` determines which threads may do what: see [`Concurrent`], [`ConcurrentReads`](crate::ConcurrentReads) and
/// [`Exclusive`](crate::Exclusive).
///
/// A get costs two dependent memory accesses: the bucket of the index (two adjacent lines), and the item. In batches
/// ([`get_many_with`](Self::get_many_with)) they overlap. A set costs the bucket, and also the item if the key had one;
/// items are evicted in log order, so reading them is sequential. An item takes its key and value, rounded up to 8
/// bytes, 8 more, 12 of index and, with the default policy, 5 for the memory of evicted keys.
#[derive(Debug)]
pub struct Cache<A: Access = Concurrent> {
    pub(super) partitions: A::Parts<Partition<A>>,
    pub(super) settings: Builder,
}

/// Optional properties of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// Maximum time that the item may stay; by default as long as there is room. Takes 8 bytes. Counted in whole
    /// milliseconds.
    pub time_to_live: Option<Duration>,
    /// A number for the caller's use. Takes 8 bytes unless it is 0.
    pub flags: u32,
}

impl Cache {
    /// Settings for a new cache, to be [built](Builder::build).
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<A: Access> Cache<A> {
    pub(super) fn new(partitions: A::Parts<Partition<A>>, settings: Builder) -> Self {
        Self { partitions, settings }
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions.len()
    }

    /// Number of the partition of `key`. Under [`ConcurrentReads`](crate::ConcurrentReads), the
    /// [`Writer`](crate::Writer) of that partition may write it.
    pub fn partition_of(&self, key: &[u8]) -> usize {
        partition_of(self.hash(key), self.partitions.len())
    }

    /// Which of `count` caches of equal settings, made by [`Builder::build_exclusive_each`], takes `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        owner_of(self.hash(key), count)
    }

    #[inline(always)]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        self.settings.common.hasher.hash(key)
    }

    #[inline(always)]
    pub(super) fn partition(&self, hash: KeyHash) -> &Partition<A> {
        match &*self.partitions {
            [only] => only,
            several => &several[partition_of(hash, several.len())],
        }
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.get_into(key, &mut value).then_some(value)
    }

    /// Replaces the contents of `value` by the value of `key`; returns whether there is one. If not, `value` is empty.
    #[inline]
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let hash = self.hash(key);
        let partition = self.partition(hash);
        let is_hit = match partition.glance(hash, key, Ahead::Nothing, &mut room()) {
            Glance::Hit(found) => {
                value.clear();
                value.extend_from_slice(found);
                true
            }
            Glance::Miss => false,
            Glance::Unusual => {
                let found = partition.read(hash, key, 0, |stored, _| {
                    value.resize(stored.value_len(), 0);
                    stored.copy_value(value);
                });
                found.is_some()
            }
        };
        if !is_hit {
            value.clear();
        }
        partition.reads.count(is_hit, A::READS_BESIDE_WRITES);
        is_hit
    }

    /// Calls `take` with the item of `key`, if there is one, and returns its result.
    ///
    /// An [`Exclusive`](crate::Exclusive) cache lends out its own memory, without a copy; the callback may read the
    /// cache but not write to it. Otherwise the bytes are copied once, without an allocation, because a writer may
    /// overwrite them.
    ///
    /// # Panics
    /// When `take` writes to an [`Exclusive`](crate::Exclusive) cache.
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], take: impl FnOnce(ItemView<'_>) -> T) -> Option<T> {
        let hash = self.hash(key);
        let partition = self.partition(hash);
        self.get_hashed(partition, hash, key, Ahead::Nothing, &mut room(), take)
    }

    /// A get of a key whose hash and partition are known.
    #[inline(always)]
    pub(super) fn get_hashed<T>(
        &self,
        partition: &Partition<A>,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        room: &mut Room,
        take: impl FnOnce(ItemView<'_>) -> T,
    ) -> Option<T> {
        let count = |is_hit| partition.reads.count(is_hit, A::READS_BESIDE_WRITES);
        let take = match partition.lend(hash, key, ahead, take) {
            Ok(outcome) => {
                count(outcome.is_some());
                return outcome;
            }
            Err(take) => take,
        };
        match partition.glance(hash, key, ahead, room) {
            Glance::Hit(value) => {
                count(true);
                Some(take(ItemView { value, flags: 0, time_to_live: None }))
            }
            Glance::Miss => {
                count(false);
                None
            }
            Glance::Unusual => {
                let outcome = get_unusual(partition, hash, key, ahead.ways(), take);
                count(outcome.is_some());
                outcome
            }
        }
    }

    /// Whether `key` has an item. Counts as an access of it, but not as a hit or miss.
    pub fn contains(&self, key: &[u8]) -> bool {
        let hash = self.hash(key);
        self.partition(hash).read(hash, key, 0, |_, _| ()).is_some()
    }

    /// A key with everything that operations on it need.
    #[inline(always)]
    pub(super) fn keyed<'a>(&'a self, key: &'a [u8]) -> Keyed<'a, A> {
        let hash = self.hash(key);
        Keyed { cache: self, partition: self.partition(hash), hash, key }
    }

    /// The metadata that the options stand for at this time.
    pub(super) fn metadata(&self, options: SetOptions) -> Metadata {
        let expires_at_ms = options.time_to_live.map_or(0, |time_to_live| {
            let milliseconds = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
            self.settings.common.now_ms().saturating_add(milliseconds)
        });
        Metadata { expires_at_ms, flags: options.flags }
    }
}

impl<A: SharedWrites> Cache<A> {
    /// Gives `key` a value that stays as long as there is room for it.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    #[inline]
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
        self.keyed(key).set(value, Metadata::default())
    }

    /// Gives `key` a value with flags or an expiry.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    pub fn set_with(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<(), TooLarge> {
        self.keyed(key).set(value, self.metadata(options))
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.keyed(key).remove()
    }

    /// Removes all items. The memory stays.
    pub fn clear(&self) {
        self.partitions.iter().for_each(Partition::clear);
    }
}

/// A get for which a glance does not suffice; not counted.
#[inline(never)]
fn get_unusual<A: Access, T>(
    partition: &Partition<A>,
    hash: KeyHash,
    key: &[u8],
    ways: u32,
    take: impl FnOnce(ItemView<'_>) -> T,
) -> Option<T> {
    let mut scratch = Scratch::new();
    let metadata = partition.read(hash, key, ways, |stored, metadata| {
        scratch.fill(stored.value_len(), |value| stored.copy_value(value));
        metadata
    })?;
    Some(scratch.lend(|value| take(partition.view(value, metadata))))
}
