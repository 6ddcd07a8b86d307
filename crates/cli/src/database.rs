//! Opening the database that a command works on.

use std::path::PathBuf;

use alluvium::{Db, Keyspace};

use crate::failure::Failure;

/// Which database and which keyspace in it.
#[derive(Clone, Debug, clap::Args)]
pub struct Location {
    /// Directory of the database
    pub database: PathBuf,
    /// Keyspace in it
    #[arg(long, short, default_value = "default")]
    pub keyspace: String,
}

impl Location {
    /// Opens a database that exists, with the keyspace if that exists; neither is created.
    pub fn open_existing(&self) -> Result<(Db, Option<Keyspace>), Failure> {
        let db = open_existing(&self.database)?;
        let exists = db.keyspace_names().contains(&self.keyspace);
        let keyspace = if exists { Some(db.keyspace(&self.keyspace)?) } else { None };
        Ok((db, keyspace))
    }

    /// Opens the database and the keyspace, creating what is not there.
    pub fn open_or_create(&self) -> Result<(Db, Keyspace), Failure> {
        let db = Db::open(&self.database)?;
        let keyspace = db.keyspace(&self.keyspace)?;
        Ok((db, keyspace))
    }
}

/// Opens a database that exists.
pub fn open_existing(directory: &PathBuf) -> Result<Db, Failure> {
    if !directory.is_dir() {
        return Err(Failure::Failed(format!("there is no database at {}", directory.display())));
    }
    Ok(Db::builder(directory).create(false).open()?)
}
