//! `alluvium put`.

use std::io::{self, Read};

use serde_json::Map;

use crate::bytes;
use crate::database::{KeyOptions, OrderOptions};
use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `put`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    key: KeyOptions,
    /// The value; standard input if absent
    value: Option<String>,
    #[command(flatten)]
    order: OrderOptions,
    #[command(flatten)]
    output: JsonOption,
}

/// Stores the value; it is durable when this returns. Creates database and keyspace as needed.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = options.key.key()?;
    let value = value(options)?;
    let (db, keyspace) = options.key.location.open_or_create(&options.order)?;
    keyspace.insert(&key, &value)?;
    drop(keyspace);
    db.close()?;
    let mut object = Map::new();
    bytes::add_json(&mut object, "key", &key);
    object.insert("value_bytes".to_owned(), value.len().into());
    options.output.print(&object, String::new)
}

fn value(options: &Options) -> Result<Vec<u8>, Failure> {
    let is_hex = options.key.hex;
    if let Some(value) = &options.value {
        return bytes::from_argument(value, is_hex);
    }
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    if is_hex { bytes::from_argument(String::from_utf8_lossy(&input).trim(), true) } else { Ok(input) }
}
