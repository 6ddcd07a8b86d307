//! Operations on single keys.

use std::time::Duration;

use crate::access::{Access, Concurrent, SharedWrites};
use crate::error::TooLarge;
use crate::evicting::Evicting;
use crate::item::{ItemView, KEY_BYTES_MAX, Metadata, Token};
use crate::memory::UNIT_BYTES;
use crate::partition::{Partition, Policy};
use crate::partitions::Partitions;
use crate::sync::AtomicU64;

use super::builder::{Builder, ITEM_OVERHEAD_BYTES};
use super::keyed::{Keyed, KeyedWrites};
use super::update::{IncrementError, Outcome, Update, keyed_writes};

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
    pub(super) partitions: Partitions<Evicting, A>,
    pub(super) settings: Builder,
    /// Number of the current [`Era`](super::Era).
    pub(super) era: AtomicU64,
}

/// Why a cache that writes by itself refuses a write.
type Refused<E> = E;

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
    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.partitions.all.len()
    }

    /// Number of the partition of `key`. Under [`ConcurrentReads`](crate::ConcurrentReads), the
    /// [`Writer`](crate::Writer) of that partition may write it.
    pub fn partition_of(&self, key: &[u8]) -> usize {
        self.partitions.number_of(self.partitions.hash(key))
    }

    /// Which of `count` caches of equal settings, made by [`Builder::build_exclusive_each`], takes `key`.
    pub fn owner_of(&self, key: &[u8], count: usize) -> usize {
        self.partitions.owner_of(key, count)
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        self.get_into(key, &mut value).then_some(value)
    }

    /// Replaces the contents of `value` by the value of `key`; returns whether there is one. If not, `value` is empty.
    #[inline]
    pub fn get_into(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let is_hit = self.partitions.get_into(key, value).is_some();
        if !is_hit {
            value.clear();
        }
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
        self.partitions.get_with(key, |partition, value, metadata| take(partition.view(value, metadata)))
    }

    /// Calls `take` for each of `keys`, in order, with its number and its item. As [`get_with`](Self::get_with), at
    /// several times its rate.
    ///
    /// # Panics
    /// When `take` writes to an [`Exclusive`](crate::Exclusive) cache.
    #[inline]
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, Option<ItemView<'_>>),
    ) {
        self.partitions.get_many_with(keys, |number, item| {
            take(number, item.map(|(partition, value, metadata)| partition.view(value, metadata)));
        });
    }

    /// Copies of the values of `keys`, in their order.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, item| values.push(item.map(|item| item.value.to_vec())));
        values
    }

    /// Whether `key` has an item. Counts as an access of it, but not as a hit or miss.
    pub fn contains(&self, key: &[u8]) -> bool {
        let hash = self.partitions.hash(key);
        self.partitions.of(hash).contains(hash, key)
    }

    /// Whether an item with a value of `value_bytes` bytes, an expiry and flags fits in the partition of `key`.
    ///
    /// # Errors
    /// [`TooLarge`] if a set might refuse it.
    pub fn check_size(&self, key: &[u8], value_bytes: usize) -> Result<(), TooLarge> {
        let body = self.partitions.of(self.partitions.hash(key)).body.get();
        let too_large = Evicting::too_large(body);
        let bytes =
            (key.len() + ITEM_OVERHEAD_BYTES).saturating_add(value_bytes).next_multiple_of(UNIT_BYTES);
        if key.len() <= KEY_BYTES_MAX && bytes <= too_large.item_bytes_max { Ok(()) } else { Err(too_large) }
    }

    /// A key with everything that operations on it need.
    #[inline(always)]
    pub(super) fn keyed<'a>(&'a self, key: &'a [u8]) -> Keyed<'a, A> {
        let hash = self.partitions.hash(key);
        Keyed { cache: self, partition: self.partitions.of(hash), hash, key }
    }

    /// The metadata that the options stand for at this time.
    pub(super) fn metadata(&self, options: SetOptions) -> Metadata {
        let expires_at_ms = options.time_to_live.map_or(0, |time_to_live| {
            let milliseconds = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
            self.settings.common.now_ms().saturating_add(milliseconds)
        });
        Metadata { expires_at_ms, flags: options.flags }
    }

    /// The metadata of an item that expires at this time of the clock.
    pub(super) fn metadata_until(&self, flags: u32, expires_at: Option<Duration>) -> Metadata {
        Metadata { expires_at_ms: expires_at.map_or(0, |at| self.settings.common.number_of(at)), flags }
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

    keyed_writes!(self, (&self), Refused);

    fn write<T, E>(&self, key: &[u8], write: impl FnOnce(Keyed<'_, A>) -> Result<T, E>) -> Result<T, E> {
        write(self.keyed(key))
    }

    /// Sets each key to its value, in order; memory accesses overlap.
    ///
    /// # Errors
    /// [`TooLarge`] for the last item that is too large; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), TooLarge> {
        self.partitions.set_each(items, |hash| Ok(self.partitions.of(hash)))
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        self.keyed(key).remove()
    }

    /// Removes all items. The memory stays.
    pub fn clear(&self) {
        self.partitions.all.iter().for_each(Partition::clear);
    }
}
