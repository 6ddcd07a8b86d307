//! [`Pinned`]: the databases of one version, for commands that see one moment.

use std::sync::Arc;

use super::database::{Source, VersionDatabase};
use super::loaded::Loaded;
use crate::store::{Database, DatabaseNumber, Databases, StoreError};

/// The databases of one version.
pub(super) struct Pinned {
    databases: [VersionDatabase; DatabaseNumber::COUNT],
}

impl Pinned {
    pub fn new(loaded: Arc<Loaded>) -> Self {
        let mut numbers = DatabaseNumber::all();
        let databases = std::array::from_fn(|_| {
            let number = numbers.next().expect("one for each database");
            VersionDatabase { number, source: Source::Pinned(Arc::clone(&loaded)) }
        });
        Self { databases }
    }
}

impl Databases for Pinned {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        &self.databases[number.position()]
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(self)
    }
}
