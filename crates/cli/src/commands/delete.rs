//! `alluvium delete`.

use crate::bytes;
use crate::database::Location;
use crate::failure::Failure;

/// Options of `delete`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    location: Location,
    /// The key
    key: String,
    /// The key is hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Removes the key; fails with [`Failure::NotFound`] where there is none.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = bytes::from_argument(&options.key, options.hex)?;
    let (db, keyspace) = options.location.open_existing()?;
    let keyspace = keyspace.ok_or(Failure::NotFound)?;
    let was_present = keyspace.contains_key(&key)?;
    if was_present {
        keyspace.remove(&key)?;
    }
    drop(keyspace);
    db.close()?;
    if was_present { Ok(()) } else { Err(Failure::NotFound) }
}
