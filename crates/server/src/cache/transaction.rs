//! The databases of a cache as a transaction sees them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use alluvium::Metadata;

use super::database::CacheDatabase;
use crate::store::stored::{Effect, effect, found, stored};
use crate::store::{Attributes, Change, Database, DatabaseNumber, Databases, Found, Kind, StoreError, Watch};

/// Databases whose writes are kept until [`CacheTransaction::apply`]. Reads see them before. No other thread reads or
/// writes meanwhile.
pub(super) struct CacheTransaction<'a> {
    databases: [TransactionDatabase<'a>; DatabaseNumber::COUNT],
}

/// An item as it will be stored; `None` if it is to be removed.
type Written = Option<(Vec<u8>, Metadata)>;

struct TransactionDatabase<'a> {
    base: &'a CacheDatabase,
    written: RefCell<BTreeMap<Box<[u8]>, Written>>,
}

impl<'a> CacheTransaction<'a> {
    pub(super) fn new(databases: &'a [CacheDatabase; DatabaseNumber::COUNT]) -> Self {
        let databases = databases.each_ref();
        Self { databases: databases.map(|base| TransactionDatabase { base, written: RefCell::default() }) }
    }

    /// Writes everything.
    pub(super) fn apply(self) -> Result<(), StoreError> {
        for TransactionDatabase { base, written } in self.databases {
            for (key, item) in written.into_inner() {
                match item {
                    // Its size was checked before.
                    Some((value, metadata)) => base.put(&key, &value, metadata)?,
                    None => base.remove(&key),
                }
            }
        }
        Ok(())
    }
}

impl Databases for CacheTransaction<'_> {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        &self.databases[number.position()]
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(self)
    }
}

impl TransactionDatabase<'_> {
    fn put(&self, key: &[u8], value: Vec<u8>, metadata: Metadata) -> Result<(), StoreError> {
        self.base.check_size(key, &value)?;
        self.written.borrow_mut().insert(key.into(), Some((value, metadata)));
        Ok(())
    }

    /// The item as it is stored, copied: what is done with it may write.
    fn get_stored(&self, key: &[u8]) -> Written {
        if let Some(written) = self.written.borrow().get(key) {
            return written.clone();
        }
        let mut item = None;
        self.base.get_stored(key, |value, metadata| item = Some((value.to_vec(), metadata)));
        item
    }

    /// The number of items, given that before the transaction.
    fn with_written(&self, before: Option<u64>) -> Result<Option<u64>, StoreError> {
        let Some(mut count) = before else { return Ok(None) };
        for (key, item) in &*self.written.borrow() {
            count += u64::from(item.is_some());
            count = count.saturating_sub(u64::from(self.base.contains(key)?));
        }
        Ok(Some(count))
    }
}

impl Database for TransactionDatabase<'_> {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        for (position, key) in keys.iter().enumerate() {
            let item = self.get_stored(key);
            each(position, item.as_ref().map(|(value, metadata)| found(value, *metadata)));
        }
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        match self.written.borrow().get(key) {
            Some(written) => Ok(written.is_some()),
            None => self.base.contains(key),
        }
    }

    fn get_any(&self, key: &[u8], each: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        if let Some((value, metadata)) = self.get_stored(key) {
            each(found(&value, metadata));
        }
        Ok(())
    }

    fn is_unchanged(&self, key: &[u8], watch: &Watch) -> Result<bool, StoreError> {
        self.base.is_unchanged(key, watch)
    }

    fn insert_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), StoreError> {
        let Attributes { flags, expires_at_ms } = attributes;
        let (value, metadata) = stored(Kind::String, Cow::Borrowed(value), flags, expires_at_ms);
        self.put(key, value.into_owned(), metadata)
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let pairs: Vec<(&[u8], &[u8])> = pairs.collect();
        pairs.iter().try_for_each(|(key, value)| self.base.check_size(key, value))?;
        pairs.iter().try_for_each(|(key, value)| self.insert(key, value, None))
    }

    fn update_any(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        let item = self.get_stored(key);
        let current = item.as_ref().map(|(value, metadata)| (&value[..], *metadata));
        let change = change(current.map(|(value, metadata)| found(value, metadata)));
        match effect(change, current) {
            Effect::Nothing => {}
            Effect::Insert(value, metadata) => self.put(key, value, metadata)?,
            Effect::Remove => {
                self.written.borrow_mut().insert(key.into(), None);
            }
        }
        Ok(())
    }

    /// Visits the keys that the transaction has inserted with the first call.
    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        let written = self.written.borrow();
        if cursor == 0 {
            written.iter().filter(|(_, item)| item.is_some()).for_each(|(key, _)| each(key));
        }
        self.base.scan(cursor, count, &mut |key| {
            if !written.contains_key(key) {
                each(key);
            }
        })
    }

    fn approximate_len(&self) -> u64 {
        self.base.approximate_len()
    }

    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        self.with_written(self.base.count(go_on)?)
    }

    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError> {
        self.with_written(self.base.count_within(visits_max)?)
    }

    fn clear(&self) -> Result<(), StoreError> {
        Err("FLUSHALL and FLUSHDB are not possible within a transaction of this server".into())
    }
}
