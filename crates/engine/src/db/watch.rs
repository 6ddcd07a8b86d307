//! [`Watch`]: shows a transaction whether a key was written since before the transaction.

use alluvium_base::KeyspaceId;

use super::keyspace::Keyspace;
use super::read::View;
use super::transaction::Transaction;
use super::update::witnessed;
use crate::blob::StoredKey;
use crate::condition::Condition;
use crate::core::Witness;
use crate::error::Result;

/// What is known of a key at some moment, for [`Transaction::is_unchanged`].
#[derive(Debug, Clone)]
pub struct Watch {
    keyspace: KeyspaceId,
    witness: Witness,
    is_present: bool,
}

impl Keyspace {
    /// Begins to watch `key`, which costs as much as [`Keyspace::contains_key`] and nothing later.
    ///
    /// A value that is read afterwards is the value of the key at the commit of any transaction that finds the key
    /// unchanged.
    pub fn watch(&self, key: impl AsRef<[u8]>) -> Result<Watch> {
        let key = key.as_ref();
        let (shared, stored_key) = (self.database(), StoredKey::of(key));
        let hash = self.shared.hasher.hash(&stored_key);
        let is_present = |view: &View<'_>| Condition::Present.holds(view, key);
        let (witness, is_present) = witnessed(shared, &self.shared, hash, &stored_key, is_present)?;
        Ok(Watch { keyspace: self.shared.id, witness, is_present })
    }
}

impl Transaction {
    /// Whether nobody has written `key` since `watch`, nor has it expired. If so, that stays true until the commit, or
    /// the transaction is tried again.
    ///
    /// Call it before the transaction writes. An item that was written with its earlier value counts as changed. So
    /// does one that the log does not show any more, which takes as long as a segment of the log is filled. In another
    /// keyspace than that of the watch, a key is unchanged if it was absent there and is absent here.
    pub fn is_unchanged(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        watch: &Watch,
    ) -> Result<bool> {
        let key = key.as_ref();
        let (owner, stored_key) = (&keyspace.shared, StoredKey::of(key));
        let hash = owner.hasher.hash(&stored_key);
        let is_present = self.contains_key(keyspace, key)?;
        if owner.id != watch.keyspace {
            return Ok(!is_present && !watch.is_present);
        }
        // What is written after the guard's witness lets the commit fail, so the version need not be the newest one.
        let version = owner.version.load();
        let was_cleared = !is_present && !watch.witness.is_of_epoch(&version);
        Ok(is_present == watch.is_present
            && (was_cleared || watch.witness.holds(&version, hash, &stored_key)?))
    }
}
