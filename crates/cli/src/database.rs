//! Options that name a database, a keyspace and a key, and functions that open them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use alluvium::{Builder, Db, Durability, Error, Keyspace, KeyspaceOptions, Order, PrefixRule};

use crate::bytes;
use crate::failure::Failure;

/// The database.
#[derive(Clone, Debug, clap::Args)]
pub struct Database {
    /// Directory of the database
    #[arg(value_name = "DIR")]
    pub database: PathBuf,
    #[command(flatten)]
    pub young: YoungOptions,
}

/// Where tables of young levels are stored.
#[derive(Clone, Debug, clap::Args)]
pub struct YoungOptions {
    /// Second directory of the database, for tables of young levels. A database that has one needs it each time
    #[arg(long, value_name = "DIR")]
    pub young_dir: Option<PathBuf>,
    /// Number of levels whose tables are written to the second directory; 0 empties it
    #[arg(long, value_name = "N", default_value_t = 1, requires = "young_dir")]
    young_levels: usize,
}

impl YoungOptions {
    /// The second directory, if any, and the number of its levels; 1 by default.
    pub fn new(young_dir: Option<PathBuf>, young_levels: Option<usize>) -> Self {
        Self { young_dir, young_levels: young_levels.unwrap_or(1) }
    }

    /// Configures the second directory, if there is one.
    pub fn give(&self, builder: Builder) -> Builder {
        match &self.young_dir {
            Some(path) => builder.young_levels_dir(path, self.young_levels),
            None => builder,
        }
    }
}

impl Database {
    /// Opens an existing database.
    pub fn open_existing(&self) -> Result<Db, Failure> {
        self.open(false, Durability::Sync)
    }

    /// Opens an existing database for reading only: none of its files changes.
    pub fn open_to_read(&self) -> Result<Db, Failure> {
        self.check_exists()?;
        let builder = self.young.give(Db::builder(&self.database).read_only(true));
        let db = builder.open().map_err(|error| self.refused(error))?;
        if let Some(first) = db.damage().first() {
            let (more, directory) = (db.damage().len() - 1, self.database.display());
            eprintln!(
                "alluvium: the database is damaged, and what is shown is what is sound: {first}, and {more} more \
                 places; `alluvium repair {directory}` keeps what is sound"
            );
        }
        Ok(db)
    }

    /// Explains what to do if a damaged database was not opened.
    fn refused(&self, error: Error) -> Failure {
        match error {
            Error::Corruption(_) | Error::MissingFile { .. } => {
                let directory = self.database.display();
                Failure::Failed(format!("{error}. `alluvium repair {directory}` keeps what is sound"))
            }
            error => explained(error),
        }
    }

    fn check_exists(&self) -> Result<(), Failure> {
        if self.database.is_dir() {
            return Ok(());
        }
        Err(Failure::Failed(format!("there is no database at {}", self.database.display())))
    }

    /// Opens the database, and creates it if there is none and `create` is true.
    pub fn open(&self, create: bool, durability: Durability) -> Result<Db, Failure> {
        if !create {
            self.check_exists()?;
        }
        let builder = Db::builder(&self.database).create(create).durability(durability);
        self.young.give(builder).open().map_err(|error| self.refused(error))
    }

    /// The directory as an absolute path without links.
    pub fn canonical(&self) -> io::Result<PathBuf> {
        canonical(&self.database)
    }
}

/// `path` as an absolute path without links.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
        .map_err(|error| io::Error::new(error.kind(), format!("finding {}: {error}", path.display())))
}

/// Explains what to do if another process has the database open.
pub fn explained(error: Error) -> Failure {
    match error {
        Error::Locked { .. } => Failure::Failed(format!(
            "{error}. One process has a database open at a time; a server answers for its own over the Redis \
             protocol (`redis-cli info`)"
        )),
        error => error.into(),
    }
}

/// The keyspace and its database.
#[derive(Clone, Debug, clap::Args)]
pub struct Location {
    #[command(flatten)]
    pub database: Database,
    /// Keyspace in it
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    pub keyspace: String,
}

impl Location {
    /// Opens an existing database, and the keyspace if it exists; creates neither.
    pub fn open_existing(&self) -> Result<(Db, Option<Keyspace>), Failure> {
        let db = self.database.open_existing()?;
        let exists = db.keyspace_names().contains(&self.keyspace);
        let keyspace = if exists { Some(db.keyspace(&self.keyspace)?) } else { None };
        Ok((db, keyspace))
    }

    /// Opens an existing database for reading only, and the keyspace if it exists.
    pub fn open_to_read(&self) -> Result<(Db, Option<Keyspace>), Failure> {
        let db = self.database.open_to_read()?;
        let exists = db.keyspace_names().contains(&self.keyspace);
        let keyspace = if exists { Some(db.keyspace(&self.keyspace)?) } else { None };
        Ok((db, keyspace))
    }

    /// Opens the database and the keyspace, creating those that do not exist. Fails if the keyspace exists with another
    /// order than the one requested, if any.
    pub fn open_or_create(&self, order: &OrderOptions) -> Result<(Db, Keyspace), Failure> {
        let db = self.database.open(true, Durability::Sync)?;
        let keyspace = order.keyspace(&db, &self.keyspace)?;
        Ok((db, keyspace))
    }
}

/// The order in which a keyspace is created.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct OrderOptions {
    /// Create the keyspace so that items whose keys share their first N bytes are stored together
    #[arg(long, value_name = "N", group = "prefix_rule")]
    prefix_bytes: Option<u16>,
    /// Create the keyspace so that items whose keys are the same up to the first CHARACTER are stored together
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, group = "prefix_rule")]
    prefix_until: Option<u8>,
    /// Create the keyspace so that its tables also name the prefixes, which scan --prefixes lists in order
    #[arg(long, requires = "prefix_rule")]
    list_prefixes: bool,
}

impl OrderOptions {
    /// The keyspace, created in this order if it does not exist. Fails if it exists with another order than the one
    /// requested, if any.
    pub fn keyspace(self, db: &Db, name: &str) -> alluvium::Result<Keyspace> {
        match self.prefix_rule() {
            None => db.keyspace(name),
            Some(rule) => {
                let options = KeyspaceOptions::semi_sorted(rule);
                let options = if self.list_prefixes { options.with_listed_prefixes() } else { options };
                db.keyspace_with(name, &options)
            }
        }
    }

    /// The order that was requested, if one was.
    pub fn order(self) -> Option<Order> {
        let lists_prefixes = self.list_prefixes;
        self.prefix_rule().map(|prefix| Order::SemiSorted { prefix, lists_prefixes })
    }

    /// Whether an order was requested.
    pub fn is_given(self) -> bool {
        self.prefix_rule().is_some()
    }

    fn prefix_rule(self) -> Option<PrefixRule> {
        let length = self.prefix_bytes.map(|bytes| PrefixRule::Length { bytes });
        length.or(self.prefix_until.map(|byte| PrefixRule::Delimiter { byte }))
    }
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err("expected one character of one byte".to_owned()),
    }
}

/// The key and its keyspace.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyOptions {
    #[command(flatten)]
    pub location: Location,
    /// The key
    key: String,
    /// The key and the value are hexadecimal
    #[arg(long)]
    pub hex: bool,
}

impl KeyOptions {
    /// The bytes of the key.
    pub fn key(&self) -> Result<Vec<u8>, Failure> {
        bytes::from_argument(&self.key, self.hex)
    }
}
