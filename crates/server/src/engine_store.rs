//! The flash engine as a store.

use alluvium::{Db, Health, Keyspace, Metadata, Update};

use crate::store::{Change, Keep, Store, StoreError, StoreHealth};

/// One keyspace of an open database. Writes have the durability that the database was opened with.
pub(crate) struct EngineStore {
    db: Db,
    keyspace: Keyspace,
}

impl EngineStore {
    /// Opens or creates the keyspace `name` of `db`.
    pub(crate) fn open(db: Db, name: &str) -> Result<Self, StoreError> {
        let keyspace = db.keyspace(name)?;
        Ok(Self { db, keyspace })
    }
}

fn kept(metadata: Metadata, keep: Keep) -> Metadata {
    match keep {
        Keep::Nothing => Metadata::default(),
        Keep::Expiry => Metadata { flags: 0, ..metadata },
        Keep::Everything => metadata,
    }
}

impl Store for EngineStore {
    fn get_many(&self, keys: &[&[u8]], each: &mut dyn FnMut(usize, Option<&[u8]>)) -> Result<(), StoreError> {
        if let [key] = keys {
            each(0, self.keyspace.get(key)?.as_deref());
            return Ok(());
        }
        for (position, value) in self.keyspace.multi_get(keys)?.iter().enumerate() {
            each(position, value.as_deref());
        }
        Ok(())
    }

    fn contains(&self, key: &[u8]) -> Result<bool, StoreError> {
        Ok(self.keyspace.contains_key(key)?)
    }

    fn insert(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        Ok(self.keyspace.insert(key, value)?)
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.insert(&self.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }

    fn update(&self, key: &[u8], change: &mut dyn FnMut(Option<&[u8]>) -> Change) -> Result<(), StoreError> {
        self.keyspace.update_with_metadata(key, |current| {
            let metadata = current.map(|(_, metadata)| metadata).unwrap_or_default();
            match change(current.map(|(value, _)| value)) {
                Change::Keep => Update::Keep,
                Change::Insert(value, keep) => Update::InsertWith(value, kept(metadata, keep)),
                Change::Remove => Update::Remove,
            }
        })?;
        Ok(())
    }

    fn append(&self, key: &[u8], bytes: &[u8]) -> Result<usize, StoreError> {
        Ok(self.keyspace.append(key, bytes)?)
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

    fn health(&self) -> StoreHealth {
        match self.db.health() {
            Health::Healthy => StoreHealth::Healthy,
            Health::ReadOnly => StoreHealth::ReadOnly,
            Health::Retrying { reason, .. } => StoreHealth::Retrying { reason },
            Health::DiskFull { reason } => StoreHealth::Failed { reason, resumable: true },
            Health::Failed { reason } => StoreHealth::Failed { reason, resumable: false },
            _ => StoreHealth::Failed { reason: "the database was closed".to_owned(), resumable: false },
        }
    }

    fn resume(&self) -> Result<(), StoreError> {
        Ok(self.db.resume()?)
    }

    fn clear(&self) -> Result<(), StoreError> {
        Ok(self.keyspace.clear()?)
    }

    fn memory_bytes(&self) -> u64 {
        self.db.stats().memory.total()
    }

    /// The plan bounds the engine's memory by the number of items, not by a figure that could be reported here.
    fn memory_bytes_max(&self) -> u64 {
        0
    }
}
