//! The right to write partitions of a store that any thread reads.

use std::ops::{Deref, Range, RangeBounds};

use crate::access::ConcurrentReads;
use crate::claim::Claim;
use crate::error::{ClaimError, OtherPartition, WriteError};
use crate::item::Metadata;
use crate::partition::Ahead;
use crate::refusing::{OutOfSpace, Refusing};

use super::handle::Store;

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
    claim: Claim<Refusing>,
}

impl Store<ConcurrentReads> {
    /// The writer of a range of partitions, given by number: `..` for all, `2..=2` for one. None of them has another
    /// writer while it lives.
    ///
    /// # Errors
    /// [`ClaimError`]: one of the partitions has a writer, or there are no such partitions.
    pub fn writer(&self, partitions: impl RangeBounds<usize>) -> Result<StoreWriter, ClaimError> {
        let claim = Claim::new(&self.partitions.all, partitions)?;
        Ok(StoreWriter {
            store: Self { partitions: self.partitions.clone(), settings: self.settings.clone() },
            claim,
        })
    }
}

impl Deref for StoreWriter {
    type Target = Store<ConcurrentReads>;

    fn deref(&self) -> &Self::Target {
        &self.store
    }
}

impl StoreWriter {
    /// Numbers of the partitions that this writer writes.
    pub fn range(&self) -> Range<usize> {
        self.claim.range()
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`WriteError`]; the key keeps its former item.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError<OutOfSpace>> {
        let hash = self.store.partitions.hash(key);
        let partition = self.claim.own(hash).map_err(WriteError::OtherPartition)?;
        Ok(partition.set(hash, key, Ahead::Nothing, value, Metadata::default())?)
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
        self.store.partitions.set_each(items, |hash| self.claim.own(hash).map_err(WriteError::OtherPartition))
    }

    /// Removes the item of `key`; returns whether there was one.
    ///
    /// # Errors
    /// [`OtherPartition`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, OtherPartition> {
        let hash = self.store.partitions.hash(key);
        Ok(self.claim.own(hash)?.remove(hash, key))
    }
}
