//! Reads single items.

use std::sync::Arc;

use alluvium_base::KeyHash;
use alluvium_io::sync::atomic::Ordering;

use super::keyspace::Keyspace;
use crate::blob::StoredKey;
use crate::core::{KeyspaceShared, Moment, Shared, find};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::level::Version;
use crate::metadata::Metadata;

impl Keyspace {
    /// The value of `key`; `None` if it is absent.
    ///
    /// Costs no read for an item that is still in the log, otherwise one read of a page (on average at most 1.005),
    /// whether the key is absent or present. A large item costs one more sequential read, of its bytes.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.read(key, |view, item| item.map(|item| view.value(key, item)).transpose())
    }

    /// The value of `key` and its metadata; `None` if the key is absent. Costs as much as [`Keyspace::get`].
    pub fn get_with_metadata(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Metadata)>> {
        let key = key.as_ref();
        self.read(key, |view, item| view.with_metadata(key, item))
    }

    /// Whether `key` is present. Costs as much as [`Keyspace::get`] of a small item; if the key is longer than 1 KiB,
    /// also a read of the key.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.read(key, |view, item| item.map_or(Ok(false), |item| view.is_of_key(key, item)))
    }

    /// Calls `found` with the item of `key` if it is live, otherwise with `None`.
    #[inline]
    pub(super) fn read<R>(
        &self,
        key: &[u8],
        found: impl Fn(&View<'_>, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        let shared = self.database();
        self.shared.check_present()?;
        let keyspace = &*self.shared;
        retry_when_moved(keyspace, |version| {
            View { shared, keyspace, version, moment: Moment::Now(shared) }.read(key, &found)
        })
    }
}

/// Reads from the current version. If a blob file is gone to which a reader of that version found a reference, its
/// items were moved meanwhile, and a later version knows where they are.
#[inline]
pub(super) fn retry_when_moved<R>(
    keyspace: &KeyspaceShared,
    read: impl Fn(&Version) -> Result<R>,
) -> Result<R> {
    loop {
        let version = keyspace.version.load();
        match read(&version) {
            Err(Error::MissingFile { .. }) if !Arc::ptr_eq(&version, &keyspace.version.load()) => {}
            Err(error @ Error::MissingFile { .. }) => {
                // The last version of a dropped keyspace has a log store, but no files.
                keyspace.check_present()?;
                return Err(error);
            }
            outcome => return outcome,
        }
    }
}

/// A keyspace in a version, at a moment.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub shared: &'a Shared,
    pub keyspace: &'a KeyspaceShared,
    pub version: &'a Version,
    pub moment: Moment<'a>,
}

impl View<'_> {
    /// Calls `found` with the item of `key` if it is live, otherwise with `None`. Counts as a get.
    pub fn read<R>(
        &self,
        key: &[u8],
        found: impl FnOnce(&Self, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        self.shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        let key = StoredKey::of(key);
        self.find(self.keyspace.hasher.hash(&key), &key, found)
    }

    /// Like [`View::read`], for a key in its stored form whose hash is known. Does not count as a get.
    pub fn find<R>(
        &self,
        hash: KeyHash,
        key: &[u8],
        found: impl FnOnce(&Self, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        self.shared.check_open()?;
        let found = find(self.version, &self.shared.counters.page_reads, hash, key, |item| {
            found(self, item.filter(|item| self.moment.is_live(item)))
        });
        found.and_then(|found| found).map_err(|error| self.shared.closed_or(error))
    }

    /// The value of `key`; `None` if it is absent.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(key, |view, item| item.map(|item| view.value(key, item)).transpose())
    }

    /// The value of an item of `key` with its metadata.
    pub fn with_metadata(&self, key: &[u8], item: Option<&Item<'_>>) -> Result<Option<(Vec<u8>, Metadata)>> {
        item.map(|item| Ok((self.value(key, item)?, Metadata::of(item)))).transpose()
    }
}
