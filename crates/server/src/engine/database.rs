//! One keyspace as a database.

use std::borrow::Cow;
use std::io::{self, Cursor, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use alluvium::{Db, Keyspace, ShortOrLong, Update, ValueOrReader, ValueReader};

use super::collections::{Collections, keyspace_names};
use super::member;
use super::watches::{EngineWatch, Watches};
use crate::store::stored::{Effect, PREFIX_BYTES_MAX, effect, found, is_plain_string, stored};
use crate::store::{
    Attributes, Change, CollectionId, Database, Found, FoundOrLong, Keep, Kind, LongValue, StoreError, Watch,
    WrongType,
};

/// Longer values are read piece by piece where they need not be in memory as a whole.
pub(super) const TOGETHER_BYTES_MAX: usize = 64 << 10;

/// Number of pairs of a long batch.
const LONG_BATCH: usize = 8192;

pub(super) struct EngineDatabase {
    db: Db,
    pub(super) keyspace: Keyspace,
    /// Opened when there is a first hash or set.
    collections: OnceLock<Collections>,
    clearing: Arc<RwLock<()>>,
    watches: Watches,
    /// Held by one worker at a time for a long batch, which takes up to 300 bytes a pair beside the request.
    long_batches: Mutex<()>,
}

impl EngineDatabase {
    /// Opens or creates the keyspace `name`.
    pub(super) fn open(
        db: &Db,
        name: &str,
        clearing: Arc<RwLock<()>>,
        watches: Watches,
    ) -> Result<Self, StoreError> {
        let collections = OnceLock::new();
        if db.keyspace_names().contains(&keyspace_names(name)[0]) {
            let _ = collections.set(Collections::open(db, name)?);
        }
        let (keyspace, long_batches) = (db.keyspace(name)?, Mutex::default());
        Ok(Self { db: db.clone(), keyspace, collections, clearing, watches, long_batches })
    }

    /// The collections of the database, opened or created.
    pub(super) fn collections(&self) -> Result<&Collections, StoreError> {
        if self.collections.get().is_none() {
            // Two clients that open them at once get the same keyspaces, and the first of them the numbers.
            let _ = self.collections.set(Collections::open(&self.db, self.keyspace.name())?);
        }
        Ok(self.collections.get().expect("it was set"))
    }

    /// Calls `each` with the item of `key`, which has this position, and with a stream if it is long.
    fn visit_one(
        &self,
        position: usize,
        key: &[u8],
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        match self.keyspace.get_or_reader(key, TOGETHER_BYTES_MAX)? {
            None => each(position, None),
            Some(ValueOrReader::Value((value, metadata))) => {
                each(position, Some(FoundOrLong::Found(found(&value, metadata))));
            }
            Some(ValueOrReader::Reader(reader)) => each(position, Some(FoundOrLong::Long(long(reader)?))),
        }
        Ok(())
    }

    /// Visits items that were looked up together, if `admits` agrees to the bytes of the long ones. These are looked up
    /// again one by one.
    pub(super) fn visit_found(
        &self,
        keys: &[&[u8]],
        items: &[Option<ShortOrLong>],
        admits: &mut dyn FnMut(usize) -> bool,
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        let long_bytes = items.iter().flatten().map(|item| match item {
            ShortOrLong::Long(bytes) => *bytes,
            ShortOrLong::Short(_) => 0,
        });
        if !admits(long_bytes.sum()) {
            return Ok(());
        }
        for (position, item) in items.iter().enumerate() {
            match item {
                None => each(position, None),
                Some(ShortOrLong::Short((value, metadata))) => {
                    each(position, Some(FoundOrLong::Found(found(value, *metadata))));
                }
                Some(ShortOrLong::Long(_)) => self.visit_one(position, keys[position], each)?,
            }
        }
        Ok(())
    }

    /// Removes some members of dead collections; returns whether there are certainly more.
    pub(super) fn tidy(&self) -> Result<bool, StoreError> {
        match self.collections.get() {
            Some(collections) => collections.tidy(&self.db, &self.keyspace),
            None => Ok(false),
        }
    }
}

/// Calls `each` with the items that `look_up` finds, and with the whole values of long ones.
pub(super) fn visit_whole(
    look_up: impl FnOnce(&mut dyn FnMut(usize, Option<FoundOrLong<'_>>)) -> Result<(), StoreError>,
    each: &mut dyn FnMut(usize, Option<Found<'_>>),
) -> Result<(), StoreError> {
    let mut outcome = Ok(());
    look_up(&mut |position, item| match item {
        None => each(position, None),
        Some(FoundOrLong::Found(item)) => each(position, Some(item)),
        Some(FoundOrLong::Long(long)) if outcome.is_ok() => {
            let LongValue { flags, expires_at_ms, mark, .. } = long;
            let mut value = Vec::with_capacity(long.len);
            outcome = long.read_into(&mut value);
            if outcome.is_ok() {
                let kind = Kind::String;
                each(position, Some(Found { kind, value: &value, flags, expires_at_ms, mark }));
            }
        }
        Some(FoundOrLong::Long(_)) => {}
    })?;
    Ok(outcome?)
}

/// A string as a stream, without what is stored before its value.
fn long(mut reader: ValueReader) -> io::Result<LongValue> {
    let (metadata, stored_len) = (reader.metadata(), usize::try_from(reader.len()).unwrap_or(usize::MAX));
    if is_plain_string(metadata) {
        let Found { flags, expires_at_ms, mark, .. } = found(&[], metadata);
        return Ok(LongValue { flags, expires_at_ms, mark, len: stored_len, bytes: Box::new(reader) });
    }
    let mut head = [0; PREFIX_BYTES_MAX];
    reader.read_exact(&mut head)?;
    let Found { value: rest, flags, expires_at_ms, mark, .. } = found(&head, metadata);
    let len = stored_len - (head.len() - rest.len());
    let bytes = Box::new(Cursor::new(rest.to_vec()).chain(reader));
    Ok(LongValue { flags, expires_at_ms, mark, len, bytes })
}

impl Database for EngineDatabase {
    fn get_many(
        &self,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, Option<Found<'_>>),
    ) -> Result<(), StoreError> {
        visit_whole(|each| self.get_many_or_long(keys, &mut |_| true, each), each)
    }

    fn get_many_or_long(
        &self,
        keys: &[&[u8]],
        admits: &mut dyn FnMut(usize) -> bool,
        each: &mut dyn FnMut(usize, Option<FoundOrLong<'_>>),
    ) -> Result<(), StoreError> {
        if let [key] = keys {
            return self.visit_one(0, key, each);
        }
        let items = self.keyspace.multi_get_short(keys, TOGETHER_BYTES_MAX)?;
        self.visit_found(keys, &items, admits, each)
    }

    fn prefetch(&self, keys: &[&[u8]]) -> Result<usize, StoreError> {
        Ok(self.keyspace.prefetch(keys)?)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.keyspace.contains_key(key)?)
    }

    fn get_any(&self, key: &[u8], each: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        if let Some((value, metadata)) = self.keyspace.get_with_metadata(key)? {
            each(found(&value, metadata));
        }
        Ok(())
    }

    /// Transactions that have changed members and seen no watch must not commit later without writing the key: a write
    /// of the key makes them try again.
    fn watch(&self, key: &[u8]) -> Result<Watch, StoreError> {
        let counted = self.watches.begin();
        let mut is_collection = false;
        if self.collections.get().is_some() {
            self.get_any(key, &mut |found| is_collection = found.kind != Kind::String)?;
        }
        if is_collection {
            self.keyspace.update_with_metadata(key, |current| match current {
                Some((value, metadata)) => Update::InsertWith(value.to_vec(), metadata),
                None => Update::Keep,
            })?;
        }
        Ok(Box::new(EngineWatch::new(self.keyspace.watch(key)?, counted)))
    }

    fn has_watches(&self) -> bool {
        self.watches.is_any()
    }

    fn insert_with(&self, key: &[u8], value: &[u8], attributes: Attributes) -> Result<(), StoreError> {
        let Attributes { flags, expires_at_ms } = attributes;
        let (value, metadata) = stored(Kind::String, Cow::Borrowed(value), flags, expires_at_ms);
        Ok(self.keyspace.insert_with(key, &value, metadata)?)
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let _turn = (pairs.size_hint().0 > LONG_BATCH)
            .then(|| self.long_batches.lock().unwrap_or_else(PoisonError::into_inner));
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.insert(&self.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }

    fn update_any(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        self.keyspace.update_with_metadata(key, |current| {
            let change = change(current.map(|(value, metadata)| found(value, metadata)));
            match effect(change, current) {
                Effect::Nothing => Update::Keep,
                Effect::Insert(value, metadata) => Update::InsertWith(value, metadata),
                Effect::Remove => Update::Remove,
            }
        })?;
        Ok(())
    }

    /// Costs as much as the appended bytes, however long the value is.
    fn append(&self, key: &[u8], bytes: &[u8]) -> Result<usize, StoreError> {
        if let Some(len) = self.keyspace.append_if(key, bytes, is_plain_string)? {
            return Ok(len);
        }
        let (mut len, mut is_string) = (0, true);
        self.update_any(key, &mut |found| {
            is_string = found.is_none_or(|found| found.kind == Kind::String);
            if !is_string {
                return Change::Keep;
            }
            let before = found.map_or(&[][..], |found| found.value);
            len = before.len() + bytes.len();
            Change::Insert([before, bytes].concat(), Keep::Everything)
        })?;
        if is_string { Ok(len) } else { Err(WrongType.into()) }
    }

    fn scan(&self, cursor: u64, count: usize, each: &mut dyn FnMut(&[u8])) -> Result<u64, StoreError> {
        let (items, next) = self.keyspace.scan(cursor, count)?;
        items.iter().for_each(|(key, _)| each(key));
        Ok(next)
    }

    fn approximate_len(&self) -> u64 {
        self.keyspace.approximate_len()
    }

    fn count(&self, go_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>, StoreError> {
        Ok(self.keyspace.count_while(go_on)?)
    }

    fn count_within(&self, visits_max: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.keyspace.count_within(visits_max)?)
    }

    fn clear(&self) -> Result<(), StoreError> {
        let _clearing = self.clearing.write().unwrap_or_else(PoisonError::into_inner);
        self.keyspace.clear()?;
        match self.collections.get() {
            Some(collections) => collections.clear(),
            None => Ok(()),
        }
    }

    fn discard_collection(&self, id: CollectionId) -> Result<(), StoreError> {
        self.collections()?.discard(id);
        Ok(())
    }

    fn member(&self, id: CollectionId, member: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let key = member::key(id, member);
        match self.collections()?.members.get(&key)? {
            Some(stored) => Ok(Some(member::decode(&key, &stored)?.1.to_vec())),
            None => Ok(None),
        }
    }

    fn members(
        &self,
        id: CollectionId,
        _values_count: bool,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        for item in self.collections()?.members.scan_prefix(member::prefix(id))? {
            let (key, stored) = item?;
            let (member, value) = member::decode(&key, &stored)?;
            each(member, value);
        }
        Ok(())
    }

    fn scan_members(
        &self,
        id: CollectionId,
        _values_count: bool,
        cursor: u64,
        count: usize,
        each: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, StoreError> {
        let (items, next) =
            self.collections()?.members.scan_prefix_from(member::prefix(id), cursor, count)?;
        for (key, stored) in &items {
            let (member, value) = member::decode(key, stored)?;
            each(member, value);
        }
        Ok(next)
    }
}
