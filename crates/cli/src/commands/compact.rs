//! `alluvium compact`.

use std::time::Instant;

use alluvium::Stats;
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `compact`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    output: JsonOption,
}

/// Merges everything into the sorted runs and prints the sizes before and after.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = options.database.open_existing()?;
    let before = table_bytes(&db.stats());
    let start = Instant::now();
    let spinner = progress::spinner("merging all runs");
    let outcome = db.compact();
    spinner.finish_and_clear();
    outcome?;
    let seconds = start.elapsed().as_secs_f64();
    let stats = db.stats();
    let (after, items) = (table_bytes(&stats), stats.items);
    db.close()?;
    let object = json!({"items": items, "bytes_before": before, "bytes_after": after, "seconds": seconds});
    options.output.print(&object, || {
        let (before, after) = (format_bytes(before), format_bytes(after));
        format!("{items} items: {before} of log and tables became {after} in {seconds:.1} s\n")
    })
}

/// Bytes of tables, and of log records that will become tables.
fn table_bytes(stats: &Stats) -> u64 {
    let of_log = stats.levels.iter().filter(|level| level.name == "log" && level.items > 0);
    let of_tables = stats.levels.iter().filter(|level| level.name != "log");
    of_log.chain(of_tables).map(|level| level.bytes).sum()
}
