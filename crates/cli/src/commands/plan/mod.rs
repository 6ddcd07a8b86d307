//! `alluvium plan`: finds the plan that fits a workload, and explains it; and `plan apply`, which changes a database's
//! plan.

mod apply;
mod demand;
mod drawing;
mod html;
mod picture;
mod report;
mod text;
mod wear;

use std::path::PathBuf;

use alluvium_model::planner::{Space, plan};

use crate::failure::Failure;
use crate::output::JsonOption;
use demand::DemandOptions;
use report::Report;
use wear::WearOptions;

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
    /// Write the frontier and the plan as a drawing, without the reasons
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Explain the choice in more detail
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Other actions on plans.
#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// Change the plan of a database; its data are moved in the background
    Apply(apply::Options),
}

/// Finds the plan and prints it, or changes a database's plan. If no plan keeps the limits, fails with the lowest
/// achievable value of each.
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
    let write = |path: &Option<PathBuf>, drawn: fn(&Report<'_>) -> String| match path {
        Some(path) => std::fs::write(path, drawn(&report))
            .map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display()))),
        None => Ok(()),
    };
    write(&options.html, html::page)?;
    write(&options.svg, drawing::drawing)?;
    options.output.print(&report.json(), || text::text(&report, options.explain))
}
