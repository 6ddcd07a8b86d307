//! [`Condition`]: what a batch demands of keys before it writes.
//!
//! Optimistic like transactions: the conditions are checked without delaying other threads, and the batch takes effect
//! only if their keys were not changed since. Otherwise they are checked again.

use std::sync::Arc;

use super::batch::{Batch, Guard};
use super::keyspace::Keyspace;
use super::read::View;
use super::update::witnessed;
use crate::blob::StoredKey;
use crate::condition::{Condition, FailedCondition, ItemVersion};
use crate::core::KeyspaceShared;
use crate::error::{Error, Result};
use crate::metadata::Metadata;

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
                self.acknowledgement.give_for_seen(shared)?;
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
    pub(super) fn holds(&self, view: &View<'_>, key: &[u8]) -> Result<bool> {
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
