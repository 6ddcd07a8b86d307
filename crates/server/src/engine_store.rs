//! The flash engine as a store.

use alluvium::{Db, Health, Keyspace, Metadata, Update};

use crate::store::{Change, Found, Keep, Store, StoreError, StoreHealth};

/// One keyspace of an open database. A commit gives writes the durability that the database was opened with.
pub(crate) struct EngineStore {
    db: Db,
    keyspace: Keyspace,
}

impl EngineStore {
    /// Opens or creates the keyspace `name` of `db`.
    pub(crate) fn open(db: Db, name: &str) -> Result<Self, StoreError> {
        let db = db.deferred();
        let keyspace = db.keyspace(name)?;
        Ok(Self { db, keyspace })
    }
}

fn expiring(expires_at_ms: Option<u64>) -> Metadata {
    Metadata { expires_at_ms, ..Metadata::default() }
}

fn kept(metadata: Metadata, keep: Keep) -> Metadata {
    match keep {
        Keep::Nothing => Metadata::default(),
        Keep::Expiry => Metadata { flags: 0, ..metadata },
        Keep::Everything => metadata,
        Keep::NothingUntil(at_ms) => expiring(Some(at_ms)),
    }
}

impl Store for EngineStore {
    fn commit(&self) -> Result<(), StoreError> {
        Ok(self.db.commit()?)
    }

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

    fn get(&self, key: &[u8], found: &mut dyn FnMut(Found<'_>)) -> Result<(), StoreError> {
        if let Some((value, Metadata { expires_at_ms, .. })) = self.keyspace.get_with_metadata(key)? {
            found(Found { value: &value, expires_at_ms });
        }
        Ok(())
    }

    fn insert(&self, key: &[u8], value: &[u8], expires_at_ms: Option<u64>) -> Result<(), StoreError> {
        Ok(self.keyspace.insert_with(key, value, expiring(expires_at_ms))?)
    }

    fn insert_many(&self, pairs: &mut dyn Iterator<Item = (&[u8], &[u8])>) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.insert(&self.keyspace, key, value);
        }
        Ok(batch.commit()?)
    }

    fn update(
        &self,
        key: &[u8],
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        self.keyspace.update_with_metadata(key, |current| {
            let metadata = current.map(|(_, metadata)| metadata).unwrap_or_default();
            let found =
                current.map(|(value, metadata)| Found { value, expires_at_ms: metadata.expires_at_ms });
            match change(found) {
                Change::Keep => Update::Keep,
                Change::Expire(expires_at_ms) => match current {
                    Some((value, _)) => {
                        Update::InsertWith(value.to_vec(), Metadata { expires_at_ms, ..metadata })
                    }
                    None => Update::Keep,
                },
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
