//! `alluvium verify`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use indicatif::ProgressBar;

use crate::database;
use crate::failure::Failure;

/// Options of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the database
    database: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Checks everything and prints what was checked and what is wrong; fails if anything is.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = database::open_existing(&options.database)?;
    let spinner = ProgressBar::new_spinner().with_message("checking all tables");
    spinner.enable_steady_tick(Duration::from_millis(200));
    let outcome = db.verify();
    spinner.finish_and_clear();
    let report = outcome?;
    db.close()?;
    let mut out = io::stdout().lock();
    if options.json {
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        for problem in &report.problems {
            writeln!(out, "{problem}")?;
        }
        writeln!(out, "{} tables, {} pages, {} items checked", report.tables, report.pages, report.items)?;
    }
    match report.problems.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} problems"))),
    }
}
