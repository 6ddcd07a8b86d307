//! `alluvium get`.

use std::io::{self, Write};

use serde_json::Map;

use crate::bytes;
use crate::database::KeyOptions;
use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `get`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    key: KeyOptions,
    #[command(flatten)]
    output: JsonOption,
    /// Print only the value, without a newline after it
    #[arg(long, short, conflicts_with = "json")]
    raw: bool,
}

/// Prints the value; fails with [`Failure::NotFound`] if there is none.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = options.key.key()?;
    let (db, keyspace) = options.key.location.open_to_read()?;
    let found = match &keyspace {
        Some(keyspace) => keyspace.get_with_metadata(&key)?,
        None => None,
    };
    drop(keyspace);
    db.close()?;
    let (value, metadata) = found.ok_or(Failure::NotFound)?;
    if options.output.json {
        let mut object = Map::new();
        bytes::add_json(&mut object, "key", &key);
        bytes::add_json(&mut object, "value", &value);
        if metadata.flags != 0 {
            object.insert("flags".to_owned(), metadata.flags.into());
        }
        if let Some(ms) = metadata.expires_at_ms {
            object.insert("expires_at_ms".to_owned(), ms.into());
        }
        return options.output.print(&object, String::new);
    }
    let mut out = io::stdout().lock();
    out.write_all(&if options.key.hex { bytes::to_hex(&value).into_bytes() } else { value })?;
    if !options.raw {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
