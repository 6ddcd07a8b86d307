//! [`Condition`]: what a batch demands of keys before it writes.
//!
//! Optimistic like transactions: the conditions are checked without delaying other threads, and the batch takes effect
//! only if their keys were not changed since. Otherwise they are checked again.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::batch::{Batch, Guard};
use super::keyspace::{Keyspace, KeyspaceShared};
use super::metadata::Metadata;
use super::read::View;
use super::update::{acknowledge_seen, witnessed};
use crate::blob::StoredKey;
use crate::error::{Error, Result};

/// What [`Batch::require`] demands of a key. An expired item counts as absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// There is no item.
    Absent,
    /// There is an item, with any value. Costs as much as [`Keyspace::contains_key`].
    Present,
    /// There is an item with this value, and any flags and expiry.
    Value(Vec<u8>),
    /// The item, or its absence, is the same as when this version was read.
    Unchanged(ItemVersion),
}

/// Identifies what was stored under a key at some moment: value, flags and expiry, or that there was no item. From
/// [`Keyspace::get_with_version`].
///
/// Two versions are equal if and only if what they stand for is: a version is a digest (SHA-256), so it may be kept for
/// any time, even across openings of the database. An item that was changed and changed back has its earlier version
/// again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ItemVersion([u8; 32]);

impl ItemVersion {
    fn of(item: Option<&(Vec<u8>, Metadata)>) -> Self {
        let mut digest = Sha256::new();
        if let Some((value, Metadata { flags, expires_at_ms })) = item {
            digest.update([1, u8::from(expires_at_ms.is_some())]);
            digest.update(flags.to_le_bytes());
            digest.update(expires_at_ms.unwrap_or(0).to_le_bytes());
            digest.update(value);
        }
        Self(digest.finalize().into())
    }

    /// The version as bytes, to be sent or stored.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// The version of these bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for ItemVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("ItemVersion(")?;
        self.0[..8].iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
        out.write_str("..)")
    }
}

/// The condition because of which a batch was not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedCondition {
    /// Its number, counted from 0 in the order of [`Batch::require`]. The first that failed.
    pub number: usize,
    /// Name of the keyspace.
    pub keyspace: String,
    /// The key.
    pub key: Vec<u8>,
    /// The condition on the key.
    pub condition: Condition,
}

impl fmt::Display for FailedCondition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let demand = match &self.condition {
            Condition::Absent => "to be absent".to_owned(),
            Condition::Present => "to be present".to_owned(),
            Condition::Value(value) => format!("to have a given value of {} bytes", value.len()),
            Condition::Unchanged(_) => "to be as it was when it was read".to_owned(),
        };
        let key = self.key[..self.key.len().min(32)].escape_ascii();
        write!(
            out,
            "nothing was written: condition {} demands key \"{key}\" of keyspace {:?} {demand}",
            self.number, self.keyspace
        )
    }
}

#[derive(Debug)]
pub(super) struct Precondition {
    keyspace: Arc<KeyspaceShared>,
    key: Vec<u8>,
    condition: Condition,
}

/// What is stored under a key, and its version: from [`Keyspace::get_with_version`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The value and its metadata; `None` if the key is absent.
    pub item: Option<(Vec<u8>, Metadata)>,
    /// For [`Condition::Unchanged`].
    pub version: ItemVersion,
}

impl Keyspace {
    /// What is stored under `key`, with its version. Costs a get and a SHA-256 of the value.
    pub fn get_with_version(&self, key: impl AsRef<[u8]>) -> Result<Versioned> {
        let item = self.get_with_metadata(key)?;
        let version = ItemVersion::of(item.as_ref());
        Ok(Versioned { item, version })
    }
}

impl Batch {
    /// Makes [`Batch::commit`] write only if `key` meets `condition` at that moment: either all conditions hold and all
    /// writes take effect, or nothing happens and [`Error::ConditionFailed`] names the first condition that failed.
    ///
    /// Conditions are checked against the state before the batch: its own writes do not matter. Each costs a get.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = alluvium::Db::open(directory.path())?;
    /// use alluvium::{Condition, Error};
    /// let names = db.keyspace("names")?;
    /// let claim = |owner: &str| {
    ///     let mut batch = db.batch();
    ///     batch.require(&names, "alluvium", Condition::Absent);
    ///     batch.insert(&names, "alluvium", owner);
    ///     batch.commit()
    /// };
    /// claim("first")?;
    /// assert!(matches!(claim("second"), Err(Error::ConditionFailed(failed)) if failed.number == 0));
    /// assert_eq!(names.get("alluvium")?.as_deref(), Some(&b"first"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn require(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>, condition: Condition) {
        assert!(Arc::ptr_eq(&self.handle, &keyspace.handle), "the keyspace belongs to another database");
        let keyspace = keyspace.shared.clone();
        self.conditions.push(Precondition { keyspace, key: key.into(), condition });
    }

    /// Checks all conditions. As long as the returned guards hold, the conditions hold.
    pub(super) fn check_conditions(&self) -> Result<Vec<Guard>> {
        let shared = &self.handle.shared;
        let mut guards = Vec::with_capacity(self.conditions.len());
        for (number, precondition) in self.conditions.iter().enumerate() {
            let Precondition { keyspace, key, condition } = precondition;
            keyspace.check_present()?;
            let stored_key = StoredKey::of(key);
            let hash = keyspace.hasher.hash(&stored_key);
            let (witness, holds) =
                witnessed(shared, keyspace, hash, &stored_key, |view| condition.holds(view, key))?;
            if !holds {
                acknowledge_seen(shared)?;
                let keyspace = keyspace.name.clone();
                let (key, condition) = (key.clone(), condition.clone());
                let failed = FailedCondition { number, keyspace, key, condition };
                return Err(Error::ConditionFailed(Box::new(failed)));
            }
            guards.push(Guard { keyspace: keyspace.clone(), hash, key: stored_key.to_vec(), witness });
        }
        Ok(guards)
    }
}

impl Condition {
    fn holds(&self, view: &View<'_>, key: &[u8]) -> Result<bool> {
        view.read(key, |view, item| {
            Ok(match self {
                Self::Absent => item.is_none(),
                Self::Present => item.map_or(Ok(false), |item| view.is_of_key(key, item))?,
                Self::Value(expected) => match item {
                    Some(item) => view.value(key, item)? == *expected,
                    None => false,
                },
                Self::Unchanged(version) => {
                    ItemVersion::of(view.with_metadata(key, item)?.as_ref()) == *version
                }
            })
        })
    }
}
