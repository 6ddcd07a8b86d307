//! `alluvium inspect`.

use std::io::{self, Write};
use std::path::PathBuf;

use alluvium::Stats;
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::database;
use crate::failure::Failure;

/// Options of `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the database
    database: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Prints keyspaces, levels and memory.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = database::open_existing(&options.database)?;
    let stats = db.stats();
    let mut keyspaces = Vec::new();
    for name in db.keyspace_names() {
        let items = db.keyspace(&name)?.approximate_len();
        keyspaces.push((name, items));
    }
    db.close()?;
    let mut out = io::stdout().lock();
    if options.json {
        let named: Vec<_> =
            keyspaces.iter().map(|(name, items)| json!({"name": name, "items": items})).collect();
        writeln!(out, "{}", json!({"keyspaces": named, "stats": stats}))?;
    } else {
        out.write_all(text(&keyspaces, &stats).as_bytes())?;
    }
    Ok(())
}

fn text(keyspaces: &[(String, u64)], stats: &Stats) -> String {
    let mut lines = vec!["keyspace              items".to_owned()];
    lines.extend(keyspaces.iter().map(|(name, items)| format!("{name:<16} {items:>10}")));
    lines.push(String::new());
    lines.push("level         runs  tables       items        bytes".to_owned());
    lines.extend(stats.levels.iter().map(|level| {
        let bytes = format_bytes(level.bytes);
        format!("{:<12} {:>5} {:>7} {:>11} {bytes:>12}", level.name, level.runs, level.tables, level.items)
    }));
    lines.push(String::new());
    let memory = &stats.memory;
    let parts = [
        ("log index", memory.log_index),
        ("filters", memory.filters),
        ("indexes", memory.indexes),
        ("write buffer", memory.write_buffer),
        ("merge buffer", memory.merge_buffer),
        ("all", memory.total()),
    ];
    lines.push("memory              bytes".to_owned());
    lines.extend(parts.iter().map(|(name, bytes)| format!("{name:<14} {:>10}", format_bytes(*bytes))));
    lines.push(String::new());
    lines.push(format!("storage: {}", stats.storage));
    lines.push(String::new());
    lines.join("\n")
}
