//! `alluvium put`.

use std::io::{self, Read};

use crate::bytes;
use crate::database::Location;
use crate::failure::Failure;

/// Options of `put`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    location: Location,
    /// The key
    key: String,
    /// The value; standard input if absent
    value: Option<String>,
    /// Key and value are hexadecimal
    #[arg(long)]
    hex: bool,
}

/// Stores the value; it is on the device when this returns. Creates database and keyspace as needed.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = bytes::from_argument(&options.key, options.hex)?;
    let value = match &options.value {
        Some(value) => bytes::from_argument(value, options.hex)?,
        None => {
            let mut input = Vec::new();
            io::stdin().lock().read_to_end(&mut input)?;
            if options.hex {
                bytes::from_argument(String::from_utf8_lossy(&input).trim(), true)?
            } else {
                input
            }
        }
    };
    let (db, keyspace) = options.location.open_or_create()?;
    keyspace.insert(&key, &value)?;
    drop(keyspace);
    db.close()?;
    Ok(())
}
