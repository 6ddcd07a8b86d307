//! [`Transaction`]: reads and writes of several keys that take effect at one moment.
//!
//! Optimistic: reads lock nothing and note what the log says about each key. The commit locks the shards of all keys
//! that were read or written, and succeeds only if no key that was read was written since. So committed transactions
//! are serializable, in the order of their commits.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_base::KeyspaceId;
use alluvium_io::sync::atomic::Ordering;

use super::batch::{Batch, Guard};
use super::database::Db;
use super::keyspace::Keyspace;
use super::multi_get::ShortOrLong;
use super::read::View;
use super::update::witnessed;
use crate::blob::StoredKey;
use crate::condition::{Condition, ItemVersion};
use crate::error::{Error, Result};
use crate::metadata::Metadata;

/// Number of attempts of [`Db::transaction`] after which it yields to other threads before each retry.
const PATIENT_ATTEMPTS: u32 = 8;

/// A transaction in progress; see [`Db::transaction`].
///
/// A read returns what the transaction wrote before, or else the newest value. Reads of several keys may be from
/// different moments. In that case the transaction does not commit and is tried again, so none of its effects is ever
/// seen.
#[derive(Debug)]
pub struct Transaction {
    pub(super) batch: Batch,
    /// By keyspace and key: the item that was read or written last.
    known: HashMap<(KeyspaceId, Vec<u8>), Option<Found>>,
}

/// The value of an item and what is stored with it.
type Found = (Vec<u8>, Metadata);

impl Db {
    /// Calls `body` with a transaction and commits it. If a conflicting write came between, repeats both until the
    /// commit succeeds.
    ///
    /// An error of `body` ends the transaction without effect. `body` should only read and write through the
    /// transaction, since it may run several times. Costs a get for each key read, and the writes of a batch.
    pub fn transaction<R>(&self, body: impl FnMut(&mut Transaction) -> Result<R>) -> Result<R> {
        self.try_transaction(body)
    }

    /// Like [`Db::transaction`], for a `body` with errors of its own.
    pub fn try_transaction<R, E: From<Error>>(
        &self,
        mut body: impl FnMut(&mut Transaction) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        let mut attempt = 0;
        loop {
            let mut transaction = Transaction::new(self.batch());
            let result = body(&mut transaction)?;
            if transaction.batch.commit_guarded()? {
                return Ok(result);
            }
            attempt += 1;
            if attempt > PATIENT_ATTEMPTS {
                // Lets the thread whose write came first finish.
                alluvium_io::sync::thread::yield_now();
            }
        }
    }
}

impl Transaction {
    fn new(batch: Batch) -> Self {
        Self { batch, known: HashMap::new() }
    }

    /// The value of `key`. Each key is read once; later reads return the same value.
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        Ok(self.get_with_metadata(keyspace, key)?.map(|(value, _)| value))
    }

    /// Like [`Transaction::get`], with flags and expiry.
    pub fn get_with_metadata(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        Ok(self.known(keyspace, key.as_ref())?.clone())
    }

    /// The version of the item of `key`, or of its absence: see [`Keyspace::get_with_version`]. An item that does not
    /// change until the commit has this version then, too.
    pub fn version(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<ItemVersion> {
        Ok(ItemVersion::of(self.known(keyspace, key.as_ref())?.as_ref()))
    }

    /// Whether there is an item under `key`. Costs as much as [`Keyspace::contains_key`].
    pub fn contains_key(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        if let Some(known) = self.known.get(&(keyspace.shared.id, key.to_vec())) {
            return Ok(known.is_some());
        }
        let is_present = |view: &View<'_>| Condition::Present.holds(view, key);
        self.guarded(keyspace, key, is_present)
    }

    /// Looks up all `keys` together, like [`Keyspace::multi_get_short`], so that their reads overlap. The transaction
    /// keeps no copies: what it reads again is read again, and fails to commit if it has changed.
    pub fn multi_get_short<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        keys: &[K],
        value_bytes_max: usize,
    ) -> Result<Vec<Option<ShortOrLong>>> {
        for key in keys {
            self.guarded(keyspace, key.as_ref(), |_| Ok(()))?;
        }
        let mut found = keyspace.multi_get_short(keys, value_bytes_max)?;
        for (found, key) in found.iter_mut().zip(keys) {
            if let Some(known) = self.known.get(&(keyspace.shared.id, key.as_ref().to_vec())) {
                *found = known.clone().map(ShortOrLong::Short);
            }
        }
        Ok(found)
    }

    fn known(&mut self, keyspace: &Keyspace, key: &[u8]) -> Result<&Option<Found>> {
        self.batch.handle.shared.check_open()?;
        let name = (keyspace.shared.id, key.to_vec());
        if self.known.contains_key(&name) {
            return Ok(&self.known[&name]);
        }
        let stored_key = StoredKey::of(key);
        let hash = keyspace.shared.hasher.hash(&stored_key);
        let read = |view: &View<'_>| view.find(hash, &stored_key, |view, item| view.with_metadata(key, item));
        let item = self.guarded(keyspace, key, read)?;
        self.batch.handle.shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        Ok(self.known.entry(name).or_insert(item))
    }

    /// What `read` finds out about `key`; the commit fails if the key is written after that.
    fn guarded<R>(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        read: impl Fn(&View<'_>) -> Result<R>,
    ) -> Result<R> {
        let shared = &self.batch.handle.shared;
        shared.check_open()?;
        assert!(
            Arc::ptr_eq(&self.batch.handle, &keyspace.handle),
            "the keyspace belongs to another database"
        );
        let (owner, stored_key) = (&keyspace.shared, StoredKey::of(key));
        let hash = owner.hasher.hash(&stored_key);
        let (witness, found) = witnessed(shared, owner, hash, &stored_key, read)?;
        self.batch.guards.push(Guard { keyspace: owner.clone(), hash, key: stored_key.to_vec(), witness });
        Ok(found)
    }

    /// Stores `value` under `key` when the transaction commits.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.insert_with(keyspace, key, value, Metadata::default());
    }

    /// Like [`Transaction::insert`], with flags or an expiry.
    pub fn insert_with(
        &mut self,
        keyspace: &Keyspace,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        metadata: Metadata,
    ) {
        let (key, value) = (key.into(), value.into());
        let shared = &self.batch.handle.shared;
        let is_live = metadata.expires_at_ms.is_none_or(|expiry| expiry > shared.now_ms());
        let item = is_live.then(|| (value.clone(), metadata));
        self.known.insert((keyspace.shared.id, key.clone()), item);
        self.batch.insert_with(keyspace, key, value, metadata);
    }

    /// Removes `key` when the transaction commits.
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>) {
        let key = key.into();
        self.known.insert((keyspace.shared.id, key.clone()), None);
        self.batch.remove(keyspace, key);
    }
}
