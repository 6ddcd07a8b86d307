//! The databases as a transaction sees them.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use alluvium::Transaction;

use super::database::{EngineDatabase, TOGETHER_BYTES_MAX, visit_whole};
use super::member;
use super::watches::EngineWatch;
use crate::store::stored::{Effect, effect, found, stored};
use crate::store::{
    Attributes, Change, CollectionId, Database, DatabaseNumber, Databases, Found, FoundOrLong, Kind,
    StoreError, Watch,
};

/// Databases whose writes take effect when the transaction commits. Reads see them before.
pub(super) struct EngineTransaction<'a> {
    databases: [OnceLock<TransactionDatabase<'a>>; DatabaseNumber::COUNT],
    transaction: &'a RefCell<&'a mut Transaction>,
    opened: &'a [OnceLock<EngineDatabase>; DatabaseNumber::COUNT],
    places: [usize; DatabaseNumber::COUNT],
}

impl<'a> EngineTransaction<'a> {
    pub(super) fn new(
        transaction: &'a RefCell<&'a mut Transaction>,
        opened: &'a [OnceLock<EngineDatabase>; DatabaseNumber::COUNT],
        places: [usize; DatabaseNumber::COUNT],
    ) -> Self {
        Self { databases: Default::default(), transaction, opened, places }
    }
}

impl Databases for EngineTransaction<'_> {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        self.databases[number.position()].get_or_init(|| {
            let base =
                self.opened[self.places[number.position()]].get().expect("a database that was selected");
            TransactionDatabase {
                transaction: self.transaction,
                base,
                written: RefCell::default(),
                written_members: RefCell::default(),
            }
        })
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(self)
    }
}

/// One database in a transaction.
struct TransactionDatabase<'a> {
    transaction: &'a RefCell<&'a mut Transaction>,
    base: &'a EngineDatabase,
    /// The keys that the transaction has written, and whether it has inserted or removed them.
    written: RefCell<BTreeMap<Box<[u8]>, bool>>,
    /// The members that the transaction has written, by their stored keys, with the stored value of those that it has
    /// not removed.
    written_members: RefCell<BTreeMap<Vec<u8>, Option<Vec<u8>>>>,
}

impl TransactionDatabase<'_> {
    fn put(&self, key: &[u8], (value, metadata): crate::store::stored::Stored<'_>) {
        let mut transaction = self.transaction.borrow_mut();
        transaction.insert_with(&self.base.keyspace, key, value, metadata);
        // It is absent already if its expiry is in the past.
        let is_inserted = transaction.contains_key(&self.base.keyspace, key).unwrap_or(true);
        self.written.borrow_mut().insert(key.into(), is_inserted);
    }

    fn remove(&self, key: &[u8]) {
        self.transaction.borrow_mut().remove(&self.base.keyspace, key);
        self.written.borrow_mut().insert(key.into(), false);
    }

    /// Visits a member that was found among the stored ones, unless the transaction has written it. If its value
    /// counts, the transaction reads it again and then notices later changes.
    fn visit_stored(
        &self,
        written: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        id: CollectionId,
        values_count: bool,
        (member, value): (&[u8], &[u8]),
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        if written.contains_key(&member::key(id, member)) {
            return Ok(());
        }
        if !values_count {
            each(member, value);
        } else if let Some(value) = self.member(id, member)? {
            // One that is gone was removed with a write of the header, because of which the transaction will fail.
            each(member, &value);
        }
        Ok(())
    }

    /// Visits the members of a collection that the transaction has inserted.
    fn visit_written(
        &self,
        written: &BTreeMap<Vec<u8>, Option<Vec<u8>>>,
        id: CollectionId,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        let prefix = member::prefix(id);
        let of_collection = written.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(&prefix));
        for (key, stored) in of_collection {
            if let Some(stored) = stored {
                let (member, value) = member::decode(key, stored)?;
                each(member, value);
            }
        }
        Ok(())
    }

    /// The number of items, given that before the transaction.
    fn with_written(&self, before: Option<u64>) -> Result<Option<u64>, StoreError> {
        let Some(mut count) = before else { return Ok(None) };
        for (key, is_inserted) in &*self.written.borrow() {
            count += u64::from(*is_inserted);
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
        visit_whole(|each| self.get_many_or_long(keys, &mut |_| true, each), each)
    }

    /// The transaction has noted all keys before it looks for long values, so it fails if one has changed since.
    fn get_many_or_long(
        &self,
        keys: &[&[u8]],
        admits: &mut dyn FnMut(usize) -> bool,
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        if let [key] = keys {
            let item = self.transaction.borrow_mut().get_with_metadata(&self.base.keyspace, key)?;
            let item = item.as_ref().map(|(value, metadata)| FoundOrLong::Found(found(value, *metadata)));
            each(0, item);
            return Ok(());
        }
        let mut transaction = self.transaction.borrow_mut();
        let items = transaction.multi_get_short(&self.base.keyspace, keys, TOGETHER_BYTES_MAX)?;
        drop(transaction);
        self.base.visit_found(keys, &items, admits, each)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.transaction.borrow_mut().contains_key(&self.base.keyspace, key)?)
    }

    fn get_any(&self, key: &[u8], each: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        let item = self.transaction.borrow_mut().get_with_metadata(&self.base.keyspace, key)?;
        if let Some((value, metadata)) = item {
            each(found(&value, metadata));
        }
        Ok(())
    }

    fn is_unchanged(&self, key: &[u8], watch: &Watch) -> Result<bool, StoreError> {
        let EngineWatch { watch, .. } = watch.downcast_ref().ok_or("a watch of another store")?;
        Ok(self.transaction.borrow_mut().is_unchanged(&self.base.keyspace, key, watch)?)
    }

    fn has_watches(&self) -> bool {
        self.base.has_watches()
    }

    fn insert_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), StoreError> {
        let Attributes { flags, expires_at_ms } = attributes;
        self.put(key, stored(Kind::String, Cow::Borrowed(value), flags, expires_at_ms));
        Ok(())
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        for (key, value) in pairs {
            self.insert(key, value, None)?;
        }
        Ok(())
    }

    fn update_any(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        let item = self.transaction.borrow_mut().get_with_metadata(&self.base.keyspace, key)?;
        let current = item.as_ref().map(|(value, metadata)| (&value[..], *metadata));
        let change = change(current.map(|(value, metadata)| found(value, metadata)));
        match effect(change, current) {
            Effect::Nothing => {}
            Effect::Insert(value, metadata) => self.put(key, (Cow::Owned(value), metadata)),
            Effect::Remove => self.remove(key),
        }
        Ok(())
    }

    /// Visits the keys that the transaction has inserted with the first call.
    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        let written = self.written.borrow();
        if cursor == 0 {
            written.iter().filter(|(_, is_inserted)| **is_inserted).for_each(|(key, _)| each(key));
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

    fn new_collection(&self, key: &[u8]) -> Result<CollectionId, StoreError> {
        self.base.collections()?.begin(&mut self.transaction.borrow_mut(), key)
    }

    fn move_collection(&self, id: CollectionId, key: &[u8]) -> Result<(), StoreError> {
        self.base.collections()?.own(&mut self.transaction.borrow_mut(), id, key);
        Ok(())
    }

    /// What is discarded before the commit is checked after it.
    fn discard_collection(&self, id: CollectionId) -> Result<(), StoreError> {
        self.base.discard_collection(id)
    }

    fn member(&self, id: CollectionId, member: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let key = member::key(id, member);
        let members = &self.base.collections()?.members;
        match self.transaction.borrow_mut().get(members, &key)? {
            Some(stored) => Ok(Some(member::decode(&key, &stored)?.1.to_vec())),
            None => Ok(None),
        }
    }

    fn insert_member(&self, id: CollectionId, member: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let (key, stored) = (member::key(id, member), member::encode(member, value));
        let members = &self.base.collections()?.members;
        self.transaction.borrow_mut().insert(members, key.clone(), stored.clone());
        self.written_members.borrow_mut().insert(key, Some(stored));
        Ok(())
    }

    fn remove_member(&self, id: CollectionId, member: &[u8]) -> Result<(), StoreError> {
        let key = member::key(id, member);
        self.transaction.borrow_mut().remove(&self.base.collections()?.members, key.clone());
        self.written_members.borrow_mut().insert(key, None);
        Ok(())
    }

    fn members(
        &self,
        id: CollectionId,
        values_count: bool,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        let written = self.written_members.borrow();
        self.visit_written(&written, id, each)?;
        let mut outcome = Ok(());
        self.base.members(id, values_count, &mut |member, value| {
            if outcome.is_ok() {
                outcome = self.visit_stored(&written, id, values_count, (member, value), each);
            }
        })?;
        outcome
    }

    /// Visits the members that the transaction has inserted with the first call.
    fn scan_members(
        &self,
        id: CollectionId,
        values_count: bool,
        cursor: u64,
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, StoreError> {
        let written = self.written_members.borrow();
        if cursor == 0 {
            self.visit_written(&written, id, each)?;
        }
        let mut outcome = Ok(());
        let next = self.base.scan_members(id, values_count, cursor, count, &mut |member, value| {
            if outcome.is_ok() {
                outcome = self.visit_stored(&written, id, values_count, (member, value), each);
            }
        })?;
        outcome.map(|()| next)
    }

    fn clear(&self) -> Result<(), StoreError> {
        Err("FLUSHALL and FLUSHDB are not possible within a transaction of this server".into())
    }
}
