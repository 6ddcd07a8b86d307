//! `alluvium restore`.

use std::path::PathBuf;

use alluvium::restore;
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `restore`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// A backup, or a directory of backups, whose latest one is restored
    source: PathBuf,
    /// Directory of the new database, which must be empty or missing
    #[arg(value_name = "DIR")]
    target: PathBuf,
    #[command(flatten)]
    output: JsonOption,
}

/// Copies a backup, checks the copy and makes it a database.
pub fn run(options: &Options) -> Result<(), Failure> {
    let bar = progress::bytes(0);
    let outcome = restore(&options.source, &options.target, |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let backup = outcome?;
    let object = json!({"restored": backup.path, "tables": backup.tables, "bytes": backup.bytes});
    options.output.print(&object, || {
        let (path, bytes) = (backup.path.display(), format_bytes(backup.bytes));
        format!("{}: {} tables ({bytes}) of {path}\n", options.target.display(), backup.tables)
    })
}
