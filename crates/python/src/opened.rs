//! [`Opened`]: a keyspace that is found, or created, when it is first used.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium::{Db, Keyspace, KeyspaceOptions};

/// The keyspace of a database's own mapping. The command imports into it, too.
pub const DEFAULT: &str = "default";

/// A database with a number of its own, so that handles of two databases are not mixed up.
#[derive(Debug, Clone)]
pub struct OpenDb {
    /// The database.
    pub db: Db,
    /// Its number.
    pub number: u64,
}

impl OpenDb {
    /// A database with the next number.
    pub fn new(db: Db) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Self { db, number: NUMBERS.fetch_add(1, Ordering::Relaxed) }
    }
}

/// See the module.
#[derive(Debug)]
pub struct Opened {
    /// The database that it belongs to.
    pub of: OpenDb,
    name: String,
    keyspace: OnceLock<Keyspace>,
    deferred: OnceLock<Keyspace>,
}

impl Opened {
    /// The keyspace of a database's own mapping.
    pub fn default_of(of: OpenDb) -> Self {
        Self { of, name: DEFAULT.to_owned(), keyspace: OnceLock::new(), deferred: OnceLock::new() }
    }

    /// A keyspace that was opened with options.
    pub fn with(of: OpenDb, name: &str, options: &KeyspaceOptions) -> alluvium::Result<Self> {
        let keyspace = of.db.keyspace_with(name, options)?;
        Ok(Self { of, name: name.to_owned(), keyspace: keyspace.into(), deferred: OnceLock::new() })
    }

    /// A keyspace that was opened as it is, or created with default options.
    pub fn named(of: OpenDb, name: &str) -> alluvium::Result<Self> {
        let keyspace = of.db.keyspace(name)?;
        Ok(Self { of, name: name.to_owned(), keyspace: keyspace.into(), deferred: OnceLock::new() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keyspace, if it was found before.
    #[inline]
    pub fn known(&self) -> Option<&Keyspace> {
        self.keyspace.get()
    }

    /// The keyspace. Its writes wait until they are durable.
    pub fn keyspace(&self) -> alluvium::Result<&Keyspace> {
        match self.keyspace.get() {
            Some(keyspace) => Ok(keyspace),
            None => {
                let keyspace = self.of.db.keyspace(&self.name)?;
                Ok(self.keyspace.get_or_init(|| keyspace))
            }
        }
    }

    /// The same keyspace, whose writes wait at the next commit of the database.
    pub fn deferred(&self) -> alluvium::Result<&Keyspace> {
        self.keyspace()?;
        match self.deferred.get() {
            Some(keyspace) => Ok(keyspace),
            None => {
                let keyspace = self.of.db.deferred().keyspace(&self.name)?;
                Ok(self.deferred.get_or_init(|| keyspace))
            }
        }
    }
}
