//! `alluvium verify`.

use crate::database::Database;
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `verify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    output: JsonOption,
}

/// Checks everything and prints what was checked and what is wrong; fails if anything is wrong.
pub fn run(options: &Options) -> Result<(), Failure> {
    let db = options.database.open_to_read()?;
    let spinner = progress::spinner("checking all tables");
    let outcome = db.verify();
    spinner.finish_and_clear();
    let report = outcome?;
    db.close()?;
    options.output.print(&report, || {
        let mut text: String = report.problems.iter().map(|problem| format!("{problem}\n")).collect();
        let (tables, pages, items) = (report.tables, report.pages, report.items);
        text.push_str(&format!("{tables} tables, {pages} pages, {items} items checked\n"));
        let (segments, bytes, blobs) = (report.log_segments, report.log_bytes, report.blob_files);
        text.push_str(&format!("{segments} log segments of {bytes} bytes, {blobs} blob files checked\n"));
        text
    })?;
    match report.problems.len() {
        0 => Ok(()),
        count => Err(Failure::Failed(format!("{count} problems"))),
    }
}
