//! `alluvium scan`.

use std::io::{self, BufWriter, Write};

use alluvium::{Error, KeyValue, Keyspace, Order};
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
    /// Print only items whose keys begin with this; in a keyspace that keeps prefixes together, those with exactly this
    /// prefix
    #[arg(long)]
    prefix: Option<String>,
    /// List the prefixes that have items, in byte order; requires a keyspace created with --list-prefixes
    #[arg(long, conflicts_with_all = ["prefix", "keys"])]
    prefixes: bool,
    /// List prefixes from this one on; it need not exist
    #[arg(long, requires = "prefixes")]
    from: Option<String>,
    /// Maximum number of items or prefixes to print
    #[arg(long, short = 'n')]
    limit: Option<u64>,
    /// Print keys only
    #[arg(long)]
    keys: bool,
    /// Print keys, values and prefixes in hexadecimal; --prefix and --from are hexadecimal too
    #[arg(long)]
    hex: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Prints items in the order of their hashes, one per line: key, a tab, value. Or prefixes, one per line.
pub fn run(options: &Options) -> Result<(), Failure> {
    let (db, keyspace) = options.location.open_to_read()?;
    let mut out = BufWriter::new(io::stdout().lock());
    if let Some(keyspace) = &keyspace {
        let limit = options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        match options.prefixes {
            true => print_prefixes(options, keyspace, limit, &mut out)?,
            false => print_items(options, keyspace, limit, &mut out)?,
        }
    }
    out.flush()?;
    drop(keyspace);
    db.close()?;
    Ok(())
}

fn print_prefixes(
    options: &Options,
    keyspace: &Keyspace,
    limit: usize,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let from = options.from.as_ref().map(|from| bytes::from_argument(from, options.hex));
    for prefix in keyspace.prefixes_from(from.transpose()?.unwrap_or_default())?.take(limit) {
        let prefix = prefix?;
        if options.output.json {
            let mut object = Map::new();
            bytes::add_json(&mut object, "prefix", &prefix);
            serde_json::to_writer(&mut *out, &object)?;
        } else {
            out.write_all(&shown(options, &prefix))?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn print_items(
    options: &Options,
    keyspace: &Keyspace,
    limit: usize,
    out: &mut impl Write,
) -> Result<(), Failure> {
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
        print(options, out, &key, &value)?;
    }
    Ok(())
}

/// The bytes in printed form.
fn shown(options: &Options, bytes: &[u8]) -> Vec<u8> {
    if options.hex { bytes::to_hex(bytes).into_bytes() } else { bytes.to_vec() }
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
        out.write_all(&shown(options, key))?;
        if !options.keys {
            out.write_all(b"\t")?;
            out.write_all(&shown(options, value))?;
        }
    }
    out.write_all(b"\n")?;
    Ok(())
}
