//! `alluvium backup`.

use std::path::PathBuf;

use alluvium::{Backup, BackupOptions, backups};
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::database::{Database, YoungOptions, explained};
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `backup`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the database; with --list, the directory of backups
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Directory of the backups of this database
    #[arg(value_name = "DEST", required_unless_present = "list", conflicts_with = "list")]
    destination: Option<PathBuf>,
    /// Afterwards, remove the oldest backups until N are left
    #[arg(long, value_name = "N", conflicts_with = "list", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Don't read and check the backup. Not with --keep: no good backup is removed in favour of a damaged one
    #[arg(long, conflicts_with_all = ["keep", "list"])]
    no_verify: bool,
    /// List the backups in a directory
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    young: YoungOptions,
    #[command(flatten)]
    output: JsonOption,
}

/// Makes a backup, or lists the existing ones.
pub fn run(options: &Options) -> Result<(), Failure> {
    let Some(destination) = &options.destination else { return list(options) };
    let db =
        Database { database: options.directory.clone(), young: options.young.clone() }.open_existing()?;
    let spinner = progress::spinner("making a backup");
    let keep = options.keep.map(|keep| keep as usize);
    let outcome = db.backup_with(destination, BackupOptions { verify: !options.no_verify, keep });
    spinner.finish_and_clear();
    let (backup, made, removed) = outcome.map_err(explained)?;
    db.close()?;
    let object = json!({
        "number": backup.number,
        "path": backup.path,
        "tables": backup.tables,
        "bytes": backup.bytes,
        "linked_tables": made.linked_tables,
        "linked_bytes": made.linked_bytes,
        "copied_tables": made.copied_tables,
        "copied_bytes": made.copied_bytes,
        "removed_backups": removed,
    });
    options.output.print(&object, || {
        let (linked, copied) = (format_bytes(made.linked_bytes), format_bytes(made.copied_bytes));
        let (linked_tables, copied_tables) = (made.linked_tables, made.copied_tables);
        let path = backup.path.display();
        format!("{path}: {linked_tables} tables linked ({linked}), {copied_tables} copied ({copied})\n")
    })
}

fn list(options: &Options) -> Result<(), Failure> {
    for backup in backups(&options.directory)? {
        let Backup { number, taken_at_ms, tables, bytes, .. } = &backup;
        options.output.print(&backup, || {
            format!("{number:06}  {taken_at_ms} ms since 1970  {tables} tables  {}\n", format_bytes(*bytes))
        })?;
    }
    Ok(())
}
