//! Reads single items.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::KeyHash;
use alluvium_cache::Era;
use alluvium_io::sync::atomic::Ordering;
use alluvium_io::sync::thread;

use super::keyspace::Keyspace;
use crate::blob::StoredKey;
use crate::core::{KeyspaceShared, Moment, Next, Shared, VersionLookup, find_by, find_in_log};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::level::Version;
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;

impl Keyspace {
    /// The value of `key`; `None` if it is absent.
    ///
    /// Costs no read for an item that is still in the log or in the row cache, otherwise one read of a page (on average
    /// at most 1.005), whether the key is absent or present. A large item costs one more sequential read, of its bytes;
    /// the row cache keeps as many references to large items as it has room for, which save the first read.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.read(key, |view, item| item.map(|item| view.value(key, item)).transpose())
    }

    /// Calls `take` with the value of `key` and returns its result; `None` if the key is absent. Costs as much as
    /// [`Keyspace::get`], without the allocation and the copy of a value of its own.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = alluvium::Db::open(directory.path())?;
    /// let words = db.keyspace("words")?;
    /// words.insert("key", "value")?;
    /// assert_eq!(words.get_with("key", |value| value.len())?, Some(5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn get_with<R>(&self, key: impl AsRef<[u8]>, take: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let key = key.as_ref();
        let take = Cell::new(Some(take));
        self.read(key, |view, item| {
            let Some(item) = item else { return Ok(None) };
            let value = view.value_of(key, item)?;
            Ok(take.take().map(|take| take(&value)))
        })
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
        let era = shared.rows.era();
        retry_when_moved(keyspace, |version| {
            View { shared, keyspace, version, moment: Moment::Now(shared), era }.read(key, &found)
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
    /// The era of rows in which the version was loaded; `None` if rows are not used.
    pub era: Option<Era>,
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
        let found = |item: Option<&Item<'_>>| found(self, item.filter(|item| self.moment.is_live(item)));
        let outcome = match find_in_log(self.version, hash, key)? {
            Some(item) => Ok(found(Some(&item))),
            None => self.find_below_log(hash, key, found),
        };
        outcome.and_then(|outcome| outcome).map_err(|error| self.shared.closed_or(error))
    }

    /// Calls `found` with the item of `key` in a row or in the tables. Where filters reject absent keys, they are asked
    /// first: they tell more often than rows that there is nothing to read.
    fn find_below_log<R>(
        &self,
        hash: KeyHash,
        key: &[u8],
        found: impl FnOnce(Option<&Item<'_>>) -> R,
    ) -> Result<R> {
        let mut begun = None;
        if self.version.has_filters() {
            let mut lookup = VersionLookup::new(self.version, hash);
            let first = lookup.next(key)?;
            if let Next::End = first {
                self.keyspace.table_lookups.count(false);
                return Ok(found(None));
            }
            begun = Some((lookup, first));
        }
        let found = match self.find_row(key, found) {
            Ok(outcome) => return Ok(outcome),
            Err(found) => found,
        };
        let (lookup, first) = match begun {
            Some(begun) => begun,
            None => {
                let mut lookup = VersionLookup::new(self.version, hash);
                let first = lookup.next(key)?;
                (lookup, first)
            }
        };
        let reads = &self.shared.counters.page_reads;
        find_by(lookup, first, reads, key, |item, pages_read| {
            self.keyspace.table_lookups.count(item.is_some_and(|item| !item.is_tombstone()));
            if pages_read > 0 {
                self.fill_row(key, item, false);
                self.note_walk(hash, pages_read);
            }
            found(item)
        })
    }

    /// Has the chains of a key written anew if a lookup read more of them than the plan says.
    #[inline]
    fn note_walk(&self, hash: KeyHash, pages_read: u32) {
        if let Some(chain) = &self.version.chain
            && let Some(reads_max) = self.version.body.plan().log.chained.and_then(|spec| spec.walk_reads_max)
            && pages_read > reads_max
            && chain.directory.long_chains.note(hash)
        {
            self.shared.scheduler.wake();
        }
    }

    /// Calls `found` with what a row says about `key`; returns it if there is no row.
    #[inline]
    pub fn find_row<R, F: FnOnce(Option<&Item<'_>>) -> R>(
        &self,
        key: &[u8],
        found: F,
    ) -> std::result::Result<R, F> {
        match self.era {
            Some(_) => self.shared.rows.find(self.keyspace.id, self.version, key, found),
            None => Err(found),
        }
    }

    /// Makes a row of what tables have for `key`, if the row cache takes it or `is_kept`.
    pub fn fill_row(&self, key: &[u8], item: Option<&Item<'_>>, is_kept: bool) {
        if let Some(era) = self.era {
            if self.shared.planted_bugs.has(PlantedRace::RowsWithoutEra) {
                // The mistake shows only if the item is replaced and converted before its row is made.
                thread::sleep(Duration::from_millis(5));
            }
            self.shared.rows.fill(era, self.keyspace.id, self.version, key, item, is_kept);
        }
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
