//! [`Libraries`]: the sources of libraries of functions, in a keyspace of their own.

use std::sync::OnceLock;

use alluvium::{Db, Keyspace};

use crate::store::{LibraryChange, NamedSources, StoreError};

/// The keyspace that has the sources by the names of their libraries; it exists once there was one.
const KEYSPACE: &str = "functions";

#[derive(Default)]
pub(super) struct Libraries {
    keyspace: OnceLock<Keyspace>,
}

impl Libraries {
    pub(super) fn all(&self, db: &Db) -> Result<NamedSources, StoreError> {
        if !db.keyspace_names().iter().any(|name| name == KEYSPACE) {
            return Ok(Vec::new());
        }
        let items = self.keyspace(db)?.iter();
        Ok(items
            .map(|item| item.map(|(name, source)| (name.to_vec(), source.to_vec())))
            .collect::<Result<_, _>>()?)
    }

    pub(super) fn change(&self, db: &Db, changes: &[LibraryChange<'_>]) -> Result<(), StoreError> {
        let keyspace = self.keyspace(db)?;
        let mut batch = db.batch();
        for change in changes {
            match change.source {
                Some(source) => batch.insert(keyspace, change.name, source),
                None => batch.remove(keyspace, change.name),
            }
        }
        Ok(batch.commit()?)
    }

    fn keyspace(&self, db: &Db) -> Result<&Keyspace, StoreError> {
        if self.keyspace.get().is_none() {
            // Two threads that open it at once get the same keyspace.
            let _ = self.keyspace.set(db.keyspace(KEYSPACE)?);
        }
        Ok(self.keyspace.get().expect("it was set"))
    }
}
