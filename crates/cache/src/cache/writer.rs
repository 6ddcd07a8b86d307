//! The right to write partitions of a cache that any thread reads.

use std::ops::{Deref, Range, RangeBounds};
use std::time::Duration;

use crate::access::ConcurrentReads;
use crate::claim::Claim;
use crate::error::{BuildError, ClaimError, OtherPartition, TooLarge, WriteError};
use crate::evicting::Evicting;
use crate::item::{ItemView, Metadata, Token};
use crate::partition::Partition;

use crate::sync::AtomicU64;

use super::handle::{Cache, SetOptions};
use super::keyed::{Keyed, KeyedWrites};
use super::update::{IncrementError, Outcome, Update, keyed_writes};

/// The only writer of some partitions of a [`ConcurrentReads`] cache.
///
/// A partition has one writer at a time: [`Cache::writer`] gives it out once, and again after it was dropped. A writer
/// can't be cloned and writes with `&mut self`, so two threads never write a partition at the same time. It may move to
/// another thread, and outlive the cache. It reads like the cache, to which it dereferences: `writer.get(key)`.
///
/// A write costs as much as in an [`Exclusive`](crate::Exclusive) cache plus the version by which readers validate; it
/// takes no lock. A key of another partition is refused with [`OtherPartition`]; [`Cache::partition_of`] returns the
/// partition of a key.
///
/// ```
/// use alluvium_cache::Cache;
///
/// let cache = Cache::builder().partitions(2).build_concurrent_reads()?;
/// let (mut first, mut second) = (cache.writer(0..1)?, cache.writer(1..2)?);
/// std::thread::scope(|scope| {
///     for writer in [&mut first, &mut second] {
///         scope.spawn(|| {
///             for number in 0..1000_u32 {
///                 let key = number.to_le_bytes();
///                 if writer.range().contains(&writer.partition_of(&key)) {
///                     writer.set(&key, b"value").unwrap();
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(cache.len(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// There is only one such writer:
///
/// ```compile_fail,E0599
/// let cache = alluvium_cache::Cache::builder().build_concurrent_reads().unwrap();
/// let writer = cache.writer(..).unwrap();
/// let another = writer.clone();
/// ```
///
/// ```compile_fail,E0499
/// let cache = alluvium_cache::Cache::builder().build_concurrent_reads().unwrap();
/// let mut writer = cache.writer(..).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| writer.set(b"key", b"value"));
///     scope.spawn(|| writer.set(b"key", b"value")); // borrowed by the other thread
/// });
/// ```
///
/// ```compile_fail,E0596
/// let cache = alluvium_cache::Cache::builder().build_concurrent_reads().unwrap();
/// let shared = std::sync::Arc::new(cache.writer(..).unwrap());
/// shared.set(b"key", b"value").unwrap(); // what is shared doesn't write
/// ```
#[derive(Debug)]
pub struct Writer {
    cache: Cache<ConcurrentReads>,
    claim: Claim<Evicting>,
}

impl Cache<ConcurrentReads> {
    /// The writer of a range of partitions, given by number: `..` for all, `2..=2` for one. None of them has another
    /// writer while it lives.
    ///
    /// # Errors
    /// [`ClaimError`]: one of the partitions has a writer, or the range names none.
    pub fn writer(&self, partitions: impl RangeBounds<usize>) -> Result<Writer, ClaimError> {
        let claim = Claim::new(&self.partitions.all, partitions)?;
        Ok(Writer {
            cache: Self {
                partitions: self.partitions.clone(),
                settings: self.settings.clone(),
                era: AtomicU64::new(0),
            },
            claim,
        })
    }
}

impl Deref for Writer {
    type Target = Cache<ConcurrentReads>;

    fn deref(&self) -> &Self::Target {
        &self.cache
    }
}

impl Writer {
    /// Numbers of the partitions that this writer writes.
    pub fn range(&self) -> Range<usize> {
        self.claim.range()
    }

    #[inline(always)]
    fn keyed<'a>(&'a self, key: &'a [u8]) -> Result<Keyed<'a, ConcurrentReads>, OtherPartition> {
        let hash = self.cache.partitions.hash(key);
        Ok(Keyed { cache: &self.cache, partition: self.claim.own(hash)?, hash, key })
    }

    /// Gives `key` a value that stays as long as there is room for it.
    ///
    /// # Errors
    /// [`WriteError`]; the key keeps its former item.
    #[inline]
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError<TooLarge>> {
        let keyed = self.keyed(key).map_err(WriteError::OtherPartition)?;
        Ok(keyed.set(value, Metadata::default())?)
    }

    fn write<T, E>(
        &mut self,
        key: &[u8],
        write: impl FnOnce(Keyed<'_, ConcurrentReads>) -> Result<T, E>,
    ) -> Result<T, WriteError<E>> {
        let keyed = self.keyed(key).map_err(WriteError::OtherPartition)?;
        Ok(write(keyed)?)
    }

    keyed_writes!(self, (&mut self), WriteError);

    /// Sets each key to its value, in order; memory accesses overlap. The keys may belong to any of the writer's
    /// partitions.
    ///
    /// # Errors
    /// [`WriteError`] for the last item that was refused; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        items: &[(K, V)],
    ) -> Result<(), WriteError<TooLarge>> {
        self.cache.partitions.set_each(items, |hash| self.claim.own(hash).map_err(WriteError::OtherPartition))
    }

    /// Removes the item of `key`; returns whether there was one.
    ///
    /// # Errors
    /// [`OtherPartition`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, OtherPartition> {
        Ok(self.keyed(key)?.remove())
    }

    /// Removes all items of the writer's partitions. The memory stays.
    pub fn clear(&mut self) {
        self.claim.partitions().iter().for_each(Partition::clear);
    }

    /// As [`Cache::sweep`], for the writer's partitions.
    pub fn sweep(&mut self) {
        self.claim.partitions().iter().for_each(|partition| partition.sweep(usize::MAX));
    }

    /// As [`Cache::resize`], for the writer's partitions: each gets its share of a limit for all partitions.
    ///
    /// # Errors
    /// [`BuildError`]; partitions that were already resized stay so.
    pub fn resize(&mut self, memory_limit: usize) -> Result<(), BuildError> {
        self.cache.resize_partitions(self.claim.range(), memory_limit)
    }
}
