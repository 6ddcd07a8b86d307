//! `alluvium get`.

use std::io::{self, Write};

use serde_json::Map;

use crate::bytes;
use crate::database::Location;
use crate::failure::Failure;

/// Options of `get`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    location: Location,
    /// The key
    key: String,
    /// The key is hexadecimal, and so shall the value be
    #[arg(long)]
    hex: bool,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
    /// Print the value alone, without a newline behind it
    #[arg(long, short)]
    raw: bool,
}

/// Prints the value; fails with [`Failure::NotFound`] where there is none.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = bytes::from_argument(&options.key, options.hex)?;
    let (db, keyspace) = options.location.open_existing()?;
    let value = match &keyspace {
        Some(keyspace) => keyspace.get(&key)?,
        None => None,
    };
    drop(keyspace);
    db.close()?;
    let value = value.ok_or(Failure::NotFound)?;
    let mut out = io::stdout().lock();
    if options.json {
        let mut object = Map::new();
        bytes::add_json(&mut object, "key", &key);
        bytes::add_json(&mut object, "value", &value);
        serde_json::to_writer(&mut out, &object)?;
    } else if options.hex {
        out.write_all(bytes::to_hex(&value).as_bytes())?;
    } else {
        out.write_all(&value)?;
    }
    if !options.raw {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
