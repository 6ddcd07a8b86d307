//! One database of a cache.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alluvium::Metadata;
use alluvium_cache::{Cursor, ItemView, Update};

use super::Items;
use super::key::{is_plain, of_database, stored as stored_key};
use crate::store::stored::{Effect, effect, found, stored};
use crate::store::{Attributes, Change, Database, DatabaseNumber, Found, Kind, StoreError, Watch};

/// Number of items in a bucket of the index, approximately.
const BUCKET_ITEMS: usize = 10;
/// Number of buckets that are visited between two questions whether to go on, and for an estimate.
const BUCKETS_AT_ONCE: usize = 64;

pub(super) struct CacheDatabase {
    items: Arc<Items>,
    number: DatabaseNumber,
}

/// The metadata of an item that was found.
#[inline]
fn metadata(item: ItemView<'_>) -> Metadata {
    Metadata { flags: item.flags, expires_at_ms: item.expires_at.map(|at| at.as_millis() as u64) }
}

#[inline]
fn seen(item: ItemView<'_>) -> Found<'_> {
    found(item.value, metadata(item))
}

/// A key that is watched until this is dropped.
struct CacheWatch {
    items: Arc<Items>,
    key: Box<[u8]>,
    writes: u64,
    is_present: bool,
}

impl Drop for CacheWatch {
    fn drop(&mut self) {
        self.items.watches.end(&self.key);
    }
}

impl CacheDatabase {
    pub(super) fn new(items: Arc<Items>, number: DatabaseNumber) -> Self {
        Self { items, number }
    }

    #[inline]
    fn key<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        stored_key(self.number, key)
    }

    /// Calls `each` with the item as it is stored, if there is one.
    pub(super) fn get_stored(&self, key: &[u8], each: impl FnOnce(&[u8], Metadata)) {
        let _passed = self.items.gate.pass();
        self.items.cache.get_with(&self.key(key), |item| each(item.value, metadata(item)));
    }

    /// Stores an item.
    pub(super) fn put(&self, key: &[u8], value: &[u8], metadata: Metadata) -> Result<(), StoreError> {
        let _passed = self.items.gate.pass();
        let expires_at = self.note_expiry(metadata.expires_at_ms);
        let key = self.key(key);
        self.items.cache.set_until(&key, value, metadata.flags, expires_at)?;
        self.items.watches.note(&key);
        Ok(())
    }

    pub(super) fn remove(&self, key: &[u8]) {
        let _passed = self.items.gate.pass();
        self.items.cache.remove(&self.key(key));
    }

    /// Whether [`CacheDatabase::put`] takes an item.
    pub(super) fn check_size(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        Ok(self.items.cache.check_size(&self.key(key), value.len())?)
    }

    fn note_expiry(&self, expires_at_ms: Option<u64>) -> Option<Duration> {
        if expires_at_ms.is_some() && !self.items.has_expired.load(Ordering::Relaxed) {
            self.items.has_expired.store(true, Ordering::Relaxed);
        }
        expires_at_ms.map(Duration::from_millis)
    }

    /// The number of items, if the cache knows it: there is one database, and no item expires.
    fn known_len(&self) -> Option<u64> {
        let is_known = self.items.has_one_database() && !self.items.has_expired.load(Ordering::Relaxed);
        if is_known { self.items.cache.len() } else { None }
    }

    /// Visits the keys of some buckets; returns where the next one begins.
    fn visit(&self, cursor: Cursor, buckets: usize, each: &mut dyn FnMut(&[u8])) -> Option<Cursor> {
        self.items.cache.scan(cursor, buckets, |stored, _| {
            if let Some(key) = of_database(self.number, stored) {
                each(key);
            }
        })
    }
}

impl Database for CacheDatabase {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        let _passed = self.items.gate.pass();
        let cache = &self.items.cache;
        if keys.iter().all(|key| is_plain(self.number, key)) {
            cache.get_many_with(keys, |position, item| each(position, item.map(seen)));
        } else {
            let keys: Vec<Cow<'_, [u8]>> = keys.iter().map(|key| self.key(key)).collect();
            cache.get_many_with(&keys, |position, item| each(position, item.map(seen)));
        }
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        let _passed = self.items.gate.pass();
        Ok(self.items.cache.contains(&self.key(key)))
    }

    fn get_any(&self, key: &[u8], each: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        self.get_stored(key, |value, metadata| each(found(value, metadata)));
        Ok(())
    }

    fn watch(&self, key: &[u8]) -> Result<Watch, StoreError> {
        let _alone = self.items.gate.close();
        let is_present = self.contains(key)?;
        let key: Box<[u8]> = self.key(key).into();
        let writes = self.items.watches.begin(&key);
        Ok(Box::new(CacheWatch { items: Arc::clone(&self.items), key, writes, is_present }))
    }

    fn is_unchanged(&self, key: &[u8], watch: &Watch) -> Result<bool, StoreError> {
        let watch: &CacheWatch = watch.downcast_ref().ok_or("a watch of another store")?;
        let writes = self.items.watches.writes(&watch.key);
        Ok(writes == watch.writes && self.contains(key)? == watch.is_present)
    }

    fn insert_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), StoreError> {
        let Attributes { flags, expires_at_ms } = attributes;
        let (value, metadata) = stored(Kind::String, Cow::Borrowed(value), flags, expires_at_ms);
        self.put(key, &value, metadata)
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let pairs: Vec<(&[u8], &[u8])> = pairs.collect();
        pairs.iter().try_for_each(|(key, value)| self.check_size(key, value))?;
        let _alone = self.items.gate.close();
        pairs.iter().try_for_each(|(key, value)| self.put(key, value, Metadata::default()))
    }

    fn update_any(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        let _passed = self.items.gate.pass();
        let (key, mut is_stored) = (self.key(key), false);
        self.items.cache.update(&key, |item| {
            let change = change(item.map(seen));
            let effect = effect(change, item.map(|item| (item.value, metadata(item))));
            is_stored = matches!(effect, Effect::Insert(..));
            match effect {
                Effect::Nothing => Update::Keep,
                Effect::Insert(value, Metadata { flags, expires_at_ms }) => {
                    Update::SetUntil(Cow::Owned(value), flags, self.note_expiry(expires_at_ms))
                }
                Effect::Remove => Update::Remove,
            }
        })?;
        if is_stored {
            self.items.watches.note(&key);
        }
        Ok(())
    }

    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        // Of two buckets at least, so that it moves on: see `Cursor::to_bits`.
        let buckets = count.div_ceil(BUCKET_ITEMS).max(2);
        let next = self.visit(Cursor::from_bits(cursor), buckets, each);
        Ok(next.map_or(0, Cursor::to_bits))
    }

    fn approximate_len(&self) -> u64 {
        if let Some(len) = self.known_len() {
            return len;
        }
        let (mut visited, mut own) = (0u64, 0u64);
        self.items.cache.scan(Cursor::default(), BUCKETS_AT_ONCE, |stored, _| {
            visited += 1;
            own += u64::from(of_database(self.number, stored).is_some());
        });
        let len = self.items.cache.len_estimate();
        (u128::from(len) * u128::from(own) / u128::from(visited.max(1))) as u64
    }

    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        if let Some(len) = self.known_len() {
            return Ok(Some(len));
        }
        let (mut cursor, mut count) = (Some(Cursor::default()), 0);
        while let Some(next) = cursor {
            if !go_on() {
                return Ok(None);
            }
            cursor = self.visit(next, BUCKETS_AT_ONCE, &mut |_| count += 1);
        }
        Ok(Some(count))
    }

    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError> {
        if let Some(len) = self.known_len() {
            return Ok(Some(len));
        }
        if self.items.cache.len_estimate() > visits_max {
            return Ok(None);
        }
        self.count(&mut || true)
    }

    fn clear(&self) -> Result<(), StoreError> {
        let _alone = self.items.gate.close();
        if self.items.has_one_database() {
            self.items.cache.clear();
            self.items.has_expired.store(false, Ordering::Relaxed);
            return Ok(());
        }
        let (mut cursor, mut keys) = (Some(Cursor::default()), Vec::new());
        while let Some(next) = cursor {
            cursor = self.visit(next, BUCKETS_AT_ONCE, &mut |key| keys.push(key.to_vec()));
            keys.drain(..).for_each(|key| self.remove(&key));
        }
        Ok(())
    }
}
