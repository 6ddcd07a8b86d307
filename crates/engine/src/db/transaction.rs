//! [`Transaction`]: reads and writes of several keys that take effect at one moment.
//!
//! Optimistic: reads lock nothing and note what the log says about each key. The commit locks the shards of all keys
//! that were read or written, and succeeds only if no key that was read was written since. So committed transactions
//! are serializable, in the order of their commits.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium_base::KeyspaceId;

use super::batch::{Batch, Guard};
use super::close::Handle;
use super::database::Db;
use super::keyspace::Keyspace;
use super::update::witnessed;
use crate::blob::StoredKey;
use crate::error::Result;
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
    batch: Batch,
    /// By keyspace and key: the value that was read or written last.
    known: HashMap<(KeyspaceId, Vec<u8>), Option<Vec<u8>>>,
}

impl Db {
    /// Calls `body` with a transaction and commits it. If a conflicting write came between, repeats both until the
    /// commit succeeds.
    ///
    /// An error of `body` ends the transaction without effect. `body` should only read and write through the
    /// transaction, since it may run several times. Costs a get for each key read, and the writes of a batch.
    pub fn transaction<R>(&self, mut body: impl FnMut(&mut Transaction) -> Result<R>) -> Result<R> {
        let mut attempt = 0;
        loop {
            let mut transaction = Transaction::new(self.handle().clone());
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
    fn new(handle: Arc<Handle>) -> Self {
        Self { batch: Batch::new(handle), known: HashMap::new() }
    }

    /// The value of `key`. Each key is read once; later reads return the same value.
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.batch.handle.shared.check_open()?;
        let name = (keyspace.shared.id, key.to_vec());
        if let Some(value) = self.known.get(&name) {
            return Ok(value.clone());
        }
        assert!(
            Arc::ptr_eq(&self.batch.handle, &keyspace.handle),
            "the keyspace belongs to another database"
        );
        let shared = &self.batch.handle.shared;
        let owner = &keyspace.shared;
        let stored_key = StoredKey::of(key);
        let hash = owner.hasher.hash(&stored_key);
        let (witness, value) = witnessed(shared, owner, hash, &stored_key, |view| view.get(key))?;
        self.batch.guards.push(Guard { keyspace: owner.clone(), hash, key: stored_key.to_vec(), witness });
        self.known.insert(name, value.clone());
        Ok(value)
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
        self.known.insert((keyspace.shared.id, key.clone()), Some(value.clone()));
        self.batch.insert_with(keyspace, key, value, metadata);
    }

    /// Removes `key` when the transaction commits.
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>) {
        let key = key.into();
        self.known.insert((keyspace.shared.id, key.clone()), None);
        self.batch.remove(keyspace, key);
    }
}
