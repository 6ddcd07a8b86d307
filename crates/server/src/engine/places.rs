//! [`Places`]: which keyspace each database is in.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use alluvium::{Db, Keyspace};

use crate::store::{DatabaseNumber, StoreError};

/// The keyspace that has the places; it exists once databases were exchanged.
const KEYSPACE: &str = "databases";
const KEY: &[u8] = b"places";

/// The place of each database: the number by which its keyspace is named. Databases are exchanged by exchanging their
/// places, so nothing is moved.
pub(super) struct Places {
    /// By the numbers of databases. A store that was read is not ordered with items: those have locks of their own.
    places: [AtomicU8; DatabaseNumber::COUNT],
    keyspace: OnceLock<Keyspace>,
}

impl Places {
    pub(super) fn open(db: &Db) -> Result<Self, StoreError> {
        let places = Self {
            places: std::array::from_fn(|number| AtomicU8::new(number as u8)),
            keyspace: OnceLock::new(),
        };
        if db.keyspace_names().iter().any(|name| name == KEYSPACE) {
            let keyspace = db.keyspace(KEYSPACE)?;
            if let Some(stored) = keyspace.get(KEY)? {
                places.set(&stored)?;
            }
            let _ = places.keyspace.set(keyspace);
        }
        Ok(places)
    }

    fn set(&self, stored: &[u8]) -> Result<(), StoreError> {
        let mut sorted = stored.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..DatabaseNumber::COUNT as u8) {
            return Err("the places of the databases are damaged".into());
        }
        self.places.iter().zip(stored).for_each(|(place, stored)| place.store(*stored, Ordering::Relaxed));
        Ok(())
    }

    pub(super) fn of(&self, number: DatabaseNumber) -> usize {
        self.places[number.position()].load(Ordering::Relaxed).into()
    }

    /// The places of all databases.
    pub(super) fn all(&self) -> [usize; DatabaseNumber::COUNT] {
        std::array::from_fn(|number| self.places[number].load(Ordering::Relaxed).into())
    }

    /// Exchanges two databases. Not called twice at once.
    pub(super) fn swap(&self, db: &Db, one: DatabaseNumber, other: DatabaseNumber) -> Result<(), StoreError> {
        if self.keyspace.get().is_none() {
            let _ = self.keyspace.set(db.keyspace(KEYSPACE)?);
        }
        let mut places = self.all().map(|place| place as u8);
        places.swap(one.position(), other.position());
        self.keyspace.get().expect("it was set").insert(KEY, places)?;
        self.set(&places)
    }
}
