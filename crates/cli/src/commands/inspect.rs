//! `alluvium inspect`.

use serde_json::json;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::{self, JsonOption};

/// Options of `inspect`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    output: JsonOption,
}

/// Prints keyspaces, levels and memory.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = options.database.open_to_read()?;
    let stats = db.stats();
    let mut keyspaces = Vec::new();
    for name in db.keyspace_names() {
        let items = db.keyspace(&name)?.approximate_len();
        keyspaces.push((name, items));
    }
    db.close()?;
    let named: Vec<_> = keyspaces.iter().map(|(name, items)| json!({"name": name, "items": items})).collect();
    options.output.print(&json!({"keyspaces": named, "stats": stats}), || {
        let mut text = "keyspace              items\n".to_owned();
        text.extend(keyspaces.iter().map(|(name, items)| format!("{name:<16} {items:>10}\n")));
        let (levels, memory) = (output::levels(&stats), output::memory(&stats));
        format!("{text}\n{levels}\n{memory}\nstorage: {}\n", stats.storage)
    })
}
