//! `alluvium inspect`.

use alluvium::{Plan, YoungDirectoryStats};
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

/// Prints keyspaces with their plans, what remains of plan changes, levels and memory.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = options.database.open_to_read()?;
    let stats = db.stats();
    let mut keyspaces = Vec::new();
    for name in db.keyspace_names() {
        let keyspace = db.keyspace(&name)?;
        keyspaces.push((name, keyspace.approximate_len(), keyspace.plan()));
    }
    db.close()?;
    let described =
        |(name, items, plan): &(String, u64, Plan)| json!({"name": name, "items": items, "plan": plan});
    let named: Vec<_> = keyspaces.iter().map(described).collect();
    options.output.print(&json!({"keyspaces": named, "stats": stats}), || {
        let mut text = "keyspace              items  plan\n".to_owned();
        text.extend(keyspaces.iter().map(|(name, items, plan)| format!("{name:<16} {items:>10}  {plan}\n")));
        let (levels, memory) = (output::levels(&stats), output::memory(&stats));
        let changes = output::plan_changes(&stats);
        let young = stats.young_directory.map_or_else(String::new, |young| {
            let YoungDirectoryStats { levels, tables, bytes } = young;
            format!("young directory: {tables} tables, {bytes} bytes; for levels below {levels}\n")
        });
        format!("{text}\n{changes}{levels}\n{memory}\nstorage: {}\n{young}", stats.storage)
    })
}
