//! [`VersionDatabase`]: a database of the version that is served at the time of each call.

use std::sync::Arc;

use alluvium_io::sync::ArcSwap;

use super::loaded::Loaded;
use crate::store::{
    Attributes, Change, CollectionId, Database, DatabaseNumber, Found, FoundOrLong, StoreError, Watch,
};

/// Which version a database is of.
pub(super) enum Source {
    /// The one that is served at the time of a call.
    Current(Arc<ArcSwap<Loaded>>),
    /// This one.
    Pinned(Arc<Loaded>),
}

/// A database of a version, without items if the version does not have it. Each call sees one version.
pub(super) struct VersionDatabase {
    pub number: DatabaseNumber,
    pub source: Source,
}

/// The version at the time when a key began to be watched. Nothing changes but the version.
struct VersionWatch(u64);

impl VersionDatabase {
    fn with<T>(&self, body: impl FnOnce(&Loaded, Option<&dyn Database>) -> T) -> T {
        match &self.source {
            Source::Current(current) => {
                let loaded = current.load();
                body(&loaded, loaded.database(self.number))
            }
            Source::Pinned(loaded) => body(loaded, loaded.database(self.number)),
        }
    }

    /// What `body` finds in the database; `absent` if the version does not have it.
    fn found<T>(
        &self,
        absent: T,
        body: impl FnOnce(&dyn Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.with(|_, database| database.map_or(Ok(absent), body))
    }

    fn refused<T>() -> Result<T, StoreError> {
        Err(alluvium::Error::ReadOnly.into())
    }
}

impl Database for VersionDatabase {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        self.with(|_, database| match database {
            Some(database) => database.get_many(keys, each),
            None => {
                (0..keys.len()).for_each(|position| each(position, None));
                Ok(())
            }
        })
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<usize, StoreError> {
        self.found(0, |database| database.prefetch(keys))
    }

    fn get_many_or_long(
        &self,
        keys: &[&[u8]],
        admits: &mut dyn FnMut(usize) -> bool,
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        self.with(|_, database| match database {
            Some(database) => database.get_many_or_long(keys, admits, each),
            None => {
                (0..keys.len()).for_each(|position| each(position, None));
                Ok(())
            }
        })
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        self.found(false, |database| database.contains(key))
    }

    fn get_any(&self, key: &[u8], found: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        self.found((), |database| database.get_any(key, found))
    }

    fn watch(&self, _key: &[u8]) -> Result<Watch, StoreError> {
        Ok(Box::new(VersionWatch(self.with(|loaded, _| loaded.number))))
    }

    fn is_unchanged(&self, _key: &[u8], watch: &Watch) -> Result<bool, StoreError> {
        let watched = watch.downcast_ref::<VersionWatch>();
        Ok(watched.is_some_and(|watched| watched.0 == self.with(|loaded, _| loaded.number)))
    }

    fn insert_with(&self, _key: &[u8], _value: &[u8], _attributes: Attributes) -> Result<(), StoreError> {
        Self::refused()
    }

    fn insert_many(&self, _pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        Self::refused()
    }

    fn update_any(
        &self,
        _key: &[u8],
        _change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        Self::refused()
    }

    /// A cursor is a place in the order of hashes, which is the same in all versions: keys that are in all versions
    /// that are served meanwhile are visited.
    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        self.found(0, |database| database.scan(cursor, count, each))
    }

    fn approximate_len(&self) -> u64 {
        self.with(|_, database| database.map_or(0, |database| database.approximate_len()))
    }

    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        self.found(Some(0), |database| database.count(go_on))
    }

    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError> {
        self.found(Some(0), |database| database.count_within(visits_max))
    }

    fn clear(&self) -> Result<(), StoreError> {
        Self::refused()
    }

    fn member(&self, id: CollectionId, member: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.found(None, |database| database.member(id, member))
    }

    fn members(
        &self,
        id: CollectionId,
        values_count: bool,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        self.found((), |database| database.members(id, values_count, each))
    }

    fn scan_members(
        &self,
        id: CollectionId,
        values_count: bool,
        cursor: u64,
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, StoreError> {
        self.found(0, |database| database.scan_members(id, values_count, cursor, count, each))
    }
}
