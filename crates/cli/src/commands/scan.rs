//! `alluvium scan`.

use std::io::{self, BufWriter, Write};

use alluvium::{Error, KeyValue, Order};
use serde_json::Map;

use crate::bytes;
use crate::database::Location;
use crate::failure::Failure;
use crate::output::JsonOption;

/// Options of `scan`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    location: Location,
    /// Only items whose keys begin with this; of a keyspace that keeps prefixes together, those with exactly this
    /// prefix
    #[arg(long)]
    prefix: Option<String>,
    /// Most items
    #[arg(long, short = 'n')]
    limit: Option<u64>,
    /// Print keys only
    #[arg(long)]
    keys: bool,
    /// Print keys and values in hexadecimal; the prefix is hexadecimal too
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Prints items in the order of their hashes, a line each: key, a tab, value.
pub fn run(options: &Options) -> Result<(), Failure> {
    let (db, keyspace) = options.location.open_to_read()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if let Some(keyspace) = &keyspace {
        let limit = options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let prefix = options.prefix.as_ref().map(|prefix| bytes::from_argument(prefix, options.hex));
        let prefix = prefix.transpose()?.unwrap_or_default();
        let is_semi_sorted = matches!(keyspace.order(), Order::SemiSorted { .. });
        let items = match &options.prefix {
            Some(_) if is_semi_sorted => keyspace.scan_prefix(&prefix)?,
            _ => keyspace.iter(),
        };
        let is_wanted = |item: &Result<KeyValue, Error>| {
            is_semi_sorted || item.as_ref().map_or(true, |(key, _)| key.starts_with(&prefix))
        };
        for item in items.filter(is_wanted).take(limit) {
            let (key, value) = item?;
            print(options, &mut out, &key, &value)?;
        }
    }
    out.flush()?;
    drop(keyspace);
    db.close()?;
    Ok(())
}

fn print(options: &Options, out: &mut impl Write, key: &[u8], value: &[u8]) -> Result<(), Failure> {
    if options.output.json {
        let mut object = Map::new();
        bytes::add_json(&mut object, "key", key);
        if !options.keys {
            bytes::add_json(&mut object, "value", value);
        }
        serde_json::to_writer(&mut *out, &object)?;
    } else {
        let shown =
            |bytes: &[u8]| if options.hex { bytes::to_hex(bytes).into_bytes() } else { bytes.to_vec() };
        out.write_all(&shown(key))?;
        if !options.keys {
            out.write_all(b"\t")?;
            out.write_all(&shown(value))?;
        }
    }
    out.write_all(b"\n")?;
    Ok(())
}
