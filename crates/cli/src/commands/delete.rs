//! `alluvium delete`.

use serde_json::Map;

use crate::bytes;
use crate::database::KeyOptions;
use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `delete`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    key: KeyOptions,
    #[command(flatten)]
    output: JsonOption,
}

/// Removes the key; fails with [`Failure::NotFound`] if it does not exist.
pub fn run(options: &Options) -> Result<(), Failure> {
    let key = options.key.key()?;
    let (db, keyspace) = options.key.location.open_existing()?;
    let keyspace = keyspace.ok_or(Failure::NotFound)?;
    let was_present = keyspace.contains_key(&key)?;
    if was_present {
        keyspace.remove(&key)?;
    }
    drop(keyspace);
    db.close()?;
    if !was_present {
        return Err(Failure::NotFound);
    }
    let mut object = Map::new();
    bytes::add_json(&mut object, "key", &key);
    object.insert("deleted".to_owned(), true.into());
    options.output.print(&object, String::new)
}
