//! `alluvium repair`.

use alluvium::{ManifestRepair, RepairOptions, RepairReport, repair};
use serde::Serialize;

use crate::database::{Database, explained};
use crate::failure::Failure;
use crate::output::JsonOption;
use crate::progress;

/// Options of `repair`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Only report what would be done
    #[arg(long)]
    dry_run: bool,
    /// Remove damaged files instead of keeping them under names that begin with `lost-`
    #[arg(long, conflicts_with = "dry_run")]
    discard: bool,
    /// Give up the tables of young levels because their directory is lost
    #[arg(long, conflicts_with = "young_dir")]
    without_young_dir: bool,
    #[command(flatten)]
    output: JsonOption,
}

#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    report: &'a RepairReport,
    may_show_old_values: bool,
}

/// Repairs the database and prints what was damaged and what is lost.
pub fn run(options: &Options) -> Result<(), Failure> {
    let spinner = progress::spinner("reading everything");
    let repair_options = RepairOptions {
        dry_run: options.dry_run,
        discard: options.discard,
        young_levels_dir: options.database.young.young_dir.clone(),
        without_young_levels: options.without_young_dir,
        ..RepairOptions::default()
    };
    let outcome = repair(&options.database.database, &repair_options);
    spinner.finish_and_clear();
    let report = outcome.map_err(explained)?;
    let may_show_old_values = report.may_show_old_values();
    options.output.print(&Outcome { report: &report, may_show_old_values }, || text(&report))
}

fn text(report: &RepairReport) -> String {
    let mut text: String = report.problems.iter().map(|problem| format!("{problem}\n")).collect();
    if !report.changed {
        let (tables, segments) = (report.tables, report.segments);
        return text + &format!("nothing to repair: {tables} tables and {segments} log segments are sound\n");
    }
    let manifest = match report.manifest {
        ManifestRepair::Sound => "sound",
        ManifestRepair::Restored => "restored whole",
        ManifestRepair::Rebuilt => "rebuilt from the tables; names of keyspaces may be lost",
    };
    let verb = if report.dry_run { "would be" } else { "were" };
    text.push_str(&format!("manifest: {manifest}\n"));
    text.push_str(&format!(
        "tables:   {} {verb} rewritten, {} lost; {} pages lost, {} items kept\n",
        report.tables_rewritten, report.tables_lost, report.pages_lost, report.items_kept
    ));
    let at_least = if report.items_lost_is_minimum { "at least " } else { "" };
    text.push_str(&format!(
        "items:    {at_least}{} lost, {} of them large; some may have newer versions that were kept\n",
        report.items_lost, report.large_items_lost
    ));
    text.push_str(&format!(
        "log:      records lost in {} places ({} bytes), {} segments lost, {} records kept\n",
        report.log_gaps, report.log_bytes_lost, report.segments_lost, report.records_kept
    ));
    if report.may_show_old_values() {
        text.push_str("Where newer items were lost, older values or removed items may reappear.\n");
    }
    if !report.set_aside.is_empty() {
        text.push_str(&format!("Damaged files are kept as {}\n", report.set_aside.join(", ")));
    }
    text
}
