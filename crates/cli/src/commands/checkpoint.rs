//! `alluvium checkpoint`.

use std::path::PathBuf;
use std::time::Instant;

use alluvium::CheckpointOptions;
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `checkpoint`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Directory of the copy, which must be empty or missing
    target: PathBuf,
    /// Don't read and check the copy: with links it takes milliseconds, but may copy damage
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Makes an independent copy, by links if both directories are on one file system.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = options.database.open_existing()?;
    let start = Instant::now();
    let spinner = progress::spinner("copying tables");
    let outcome = db.checkpoint_with(&options.target, CheckpointOptions { verify: !options.no_verify });
    spinner.finish_and_clear();
    let checkpoint = outcome?;
    let seconds = start.elapsed().as_secs_f64();
    let items = db.stats().items;
    db.close()?;
    let (linked, copied) = (checkpoint.linked_tables, checkpoint.copied_tables);
    let object = json!({
        "items": items,
        "linked_tables": linked,
        "copied_tables": copied,
        "copied_bytes": checkpoint.copied_bytes,
        "seconds": seconds,
    });
    options.output.print(&object, || {
        let bytes = format_bytes(checkpoint.copied_bytes);
        format!("{items} items: {linked} tables linked, {copied} copied ({bytes}) in {seconds:.2} s\n")
    })
}
