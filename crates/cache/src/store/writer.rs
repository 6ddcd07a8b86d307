//! The right to write partitions of a store that any thread reads.

use std::ops::{Deref, Range, RangeBounds};
use std::sync::Arc;

use alluvium_base::KeyHash;

use crate::access::{ConcurrentReads, Owner};
use crate::claim::{self, Claimed};
use crate::error::{ClaimError, OtherPartition, WriteError};
use crate::index::partition_of;

use super::handle::{OutOfSpace, Store};
use super::partition::Partition;

/// The only writer of some partitions of a [`ConcurrentReads`] store, as a [`Writer`](crate::Writer) is for a cache. It
/// reads like the store.
///
/// ```
/// use alluvium_cache::{ConcurrentReads, Store};
///
/// let store = Store::builder().build_as::<ConcurrentReads>()?;
/// let mut writer = store.writer(..)?;
/// writer.set(b"key", b"value")?;
/// assert_eq!(store.get(b"key").as_deref(), Some(&b"value"[..]));
/// assert!(store.writer(..).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0599
/// use alluvium_cache::{ConcurrentReads, Store};
///
/// let store = Store::builder().build_as::<ConcurrentReads>().unwrap();
/// store.set(b"key", b"value").unwrap(); // a shared store doesn't write
/// ```
///
/// ```compile_fail,E0499
/// use alluvium_cache::{ConcurrentReads, Store};
///
/// let store = Store::builder().build_as::<ConcurrentReads>().unwrap();
/// let mut writer = store.writer(..).unwrap();
/// std::thread::scope(|scope| {
///     scope.spawn(|| writer.set(b"key", b"value"));
///     scope.spawn(|| writer.set(b"key", b"value")); // borrowed by the other thread
/// });
/// ```
#[derive(Debug)]
pub struct StoreWriter {
    store: Store<ConcurrentReads>,
    range: Range<usize>,
}

impl Claimed for Partition<ConcurrentReads> {
    fn owner(&self) -> &Owner {
        &self.gate
    }
}

impl Store<ConcurrentReads> {
    /// The writer of a range of partitions, given by number: `..` for all, `2..=2` for one. None of them has another
    /// writer while it lives.
    ///
    /// # Errors
    /// [`ClaimError`]: one of the partitions has a writer, or there are no such partitions.
    pub fn writer(&self, partitions: impl RangeBounds<usize>) -> Result<StoreWriter, ClaimError> {
        let range = claim::claim(&self.partitions, partitions)?;
        let store = Self { partitions: Arc::clone(&self.partitions), settings: self.settings.clone() };
        Ok(StoreWriter { store, range })
    }
}

impl Deref for StoreWriter {
    type Target = Store<ConcurrentReads>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        claim::release(&self.store.partitions, self.range.clone());
    }
}

impl StoreWriter {
    /// Numbers of the partitions that this writer writes.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The partition of `hash`, if it belongs to this writer.
    #[inline(always)]
    fn own(&self, hash: KeyHash) -> Result<&Partition<ConcurrentReads>, OtherPartition> {
        let partition = partition_of(hash, self.store.partitions.len());
        let own = self.range.contains(&partition).then(|| self.store.partitions.get(partition)).flatten();
        own.ok_or(OtherPartition { partition })
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`WriteError`]; the key keeps its former item.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError<OutOfSpace>> {
        let hash = self.store.hash(key);
        let partition = self.own(hash).map_err(WriteError::OtherPartition)?;
        Ok(partition.set(hash, key, value)?)
    }

    /// Gives each key its value, in order; memory accesses overlap. The keys may belong to any of the writer's
    /// partitions.
    ///
    /// # Errors
    /// [`WriteError`] for the last item that was refused; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        items: &[(K, V)],
    ) -> Result<(), WriteError<OutOfSpace>> {
        self.store.set_each(items, |hash| self.own(hash).map_err(WriteError::OtherPartition))
    }

    /// Removes the item of `key`; returns whether there was one.
    ///
    /// # Errors
    /// [`OtherPartition`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, OtherPartition> {
        let hash = self.store.hash(key);
        Ok(self.own(hash)?.remove(hash, key))
    }
}
