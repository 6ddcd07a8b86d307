//! `alluvium plan`: the plan that fits a workload, and why; and `plan apply`, which changes a database's.

mod apply;
mod demand;
mod html;
mod picture;
mod report;
mod text;

use std::path::PathBuf;

use alluvium_model::planner::{Space, plan};

use super::model::output::WearOptions;
use crate::failure::Failure;
use crate::output::JsonOption;
use demand::DemandOptions;
use report::Report;

/// Options of `plan`.
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    demand: DemandOptions,
    #[command(flatten)]
    wear: WearOptions,
    /// Write a page with the frontier and the plan drawn: one file that needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Say more about why
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// What else to do with plans.
#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Give a database another plan; its data follow in the background
    Apply(apply::Options),
}

/// Looks for the plan and prints it, or gives a database one. Fails where no plan keeps the limits, with how far each
/// can be brought down.
pub fn run(options: &Options) -> Result<(), Failure> {
    if let Some(Action::Apply(options)) = &options.action {
        return apply::run(options);
    }
    let demand = options.demand.demand()?;
    let wear = options.wear.wear(demand.workload.item.bytes());
    wear.validate()?;
    let planned = plan(&demand, &Space::default())?;
    let Some(recommended) = planned.recommended() else {
        return Err(Failure::Failed(planned.explanation.join(" ")));
    };
    let report = Report::new(&demand, &planned, recommended, &wear)?;
    if let Some(path) = &options.html {
        std::fs::write(path, html::page(&report))
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))?;
    }
    options.output.print(&report.json(), || text::text(&report, options.explain))
}
