//! The flash engine as a store: one keyspace for each database.

mod collections;
mod database;
mod libraries;
mod member;
mod places;
mod reports;
mod transaction;
mod watches;

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use alluvium::{Db, Durability, Health};

use crate::MetricSink;
use crate::metrics::{Predictor, observe_engine};
use crate::store::{
    Database, DatabaseNumber, Databases, LibraryChange, NamedSources, Report, Store, StoreError, StoreHealth,
};
use database::EngineDatabase;
use libraries::Libraries;
use places::Places;
use transaction::EngineTransaction;
use watches::Watches;

/// Number of times that keys are read together because one was written meanwhile; then they are read one by one.
const READ_ATTEMPTS_MAX: u32 = 64;

/// An open database. A commit gives writes the durability that it was opened with.
pub(crate) struct EngineStore {
    db: Db,
    /// By their places.
    databases: [OnceLock<EngineDatabase>; DatabaseNumber::COUNT],
    places: Places,
    libraries: Libraries,
    /// Held by transactions, and exclusively while a database is cleared, because its members go after its keys, and
    /// while databases are exchanged.
    clearing: Arc<RwLock<()>>,
    watches: Watches,
    predictor: Predictor,
}

impl EngineStore {
    /// The store with its first database, which is created if it does not exist, and all others that exist.
    pub(crate) fn open(db: Db) -> Result<Self, StoreError> {
        let db = db.deferred();
        let store = Self {
            places: Places::open(&db)?,
            db,
            databases: Default::default(),
            libraries: Libraries::default(),
            clearing: Arc::default(),
            watches: Watches::default(),
            predictor: Predictor::default(),
        };
        let exist = store.db.keyspace_names();
        for number in DatabaseNumber::all() {
            if number == DatabaseNumber::default() || exist.contains(&keyspace_name(store.places.of(number)))
            {
                Store::open(&store, number)?;
            }
        }
        Ok(store)
    }
}

impl EngineStore {
    /// A database, if it is open.
    pub(crate) fn opened_database(&self, number: DatabaseNumber) -> Option<&dyn Database> {
        self.databases[self.places.of(number)].get().map(|database| database as &dyn Database)
    }
}

/// The name of the keyspace at a place.
fn keyspace_name(place: usize) -> String {
    match place {
        0 => "default".to_owned(),
        position => format!("db{position}"),
    }
}

impl Databases for EngineStore {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        self.databases[self.places.of(number)].get().expect("a database that was selected")
    }

    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _not_clearing = self.clearing.read().unwrap_or_else(PoisonError::into_inner);
        self.db.try_transaction(|transaction| {
            body(&EngineTransaction::new(&RefCell::new(transaction), &self.databases, self.places.all()))
        })
    }

    /// Keys that are written all the time would hold a reader up for ever.
    fn at_one_moment(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut attempts = 0;
        self.atomically(&mut |inside| {
            attempts += 1;
            if attempts > READ_ATTEMPTS_MAX { body(self) } else { body(inside) }
        })
    }
}

impl Store for EngineStore {
    fn commit(&self) -> Result<(), StoreError> {
        Ok(self.db.commit()?)
    }

    fn commit_waits(&self) -> bool {
        self.db.durability() == Durability::Sync
    }

    fn prefetches(&self) -> bool {
        true
    }

    fn open(&self, number: DatabaseNumber) -> Result<(), StoreError> {
        let place = self.places.of(number);
        let database = &self.databases[place];
        if database.get().is_none() {
            // Two clients that open it at once get the same keyspace.
            let (clearing, watches) = (self.clearing.clone(), self.watches.clone());
            let opened = EngineDatabase::open(&self.db, &keyspace_name(place), clearing, watches)?;
            let _ = database.set(opened);
        }
        Ok(())
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        DatabaseNumber::all()
            .filter(|number| self.databases[self.places.of(*number)].get().is_some())
            .collect()
    }

    fn swap(&self, one: DatabaseNumber, other: DatabaseNumber) -> Result<(), StoreError> {
        // A transaction sees either the places before or those after.
        let _no_transactions = self.clearing.write().unwrap_or_else(PoisonError::into_inner);
        Store::open(self, one)?;
        Store::open(self, other)?;
        self.places.swap(&self.db, one, other)
    }

    fn tidy(&self) -> Result<bool, StoreError> {
        let mut has_more = false;
        for database in self.databases.iter().filter_map(OnceLock::get) {
            let _not_clearing = self.clearing.read().unwrap_or_else(PoisonError::into_inner);
            has_more |= database.tidy()?;
        }
        Ok(has_more)
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

    fn observe(&self, sink: &mut dyn MetricSink) {
        if let Some(first) = self.databases[self.places.of(DatabaseNumber::FIRST)].get() {
            observe_engine(&self.db, &first.keyspace, &self.predictor, sink);
        }
    }

    fn is_stored(&self) -> bool {
        true
    }

    fn changes(&self) -> u64 {
        self.db.stats().traffic.puts
    }

    fn back_up(&self, root: &Path, kept: Option<usize>) -> Result<Report, StoreError> {
        reports::back_up(&self.db, root, kept)
    }

    fn verify(&self) -> Result<Report, StoreError> {
        reports::verify(&self.db)
    }

    fn keyspace_figures(&self, keyspace: &str) -> Result<Report, StoreError> {
        reports::keyspace_figures(&self.db, keyspace)
    }

    fn plan(&self, keyspace: &str) -> Result<Report, StoreError> {
        reports::plan(&self.db, keyspace)
    }

    fn libraries(&self) -> Result<NamedSources, StoreError> {
        self.libraries.all(&self.db)
    }

    fn change_libraries(&self, changes: &[LibraryChange<'_>]) -> Result<(), StoreError> {
        self.libraries.change(&self.db, changes)
    }

    fn memory_bytes(&self) -> u64 {
        self.db.stats().memory.total()
    }

    /// Measured with keys and values of some bytes.
    fn batch_bytes(&self, writes: usize) -> usize {
        448 * writes
    }

    /// The plan bounds the engine's memory by the number of items, not by a figure that could be reported here.
    fn memory_bytes_max(&self) -> u64 {
        0
    }
}
