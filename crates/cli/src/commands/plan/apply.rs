//! `alluvium plan apply`: changes the plan of a database.

use std::path::Path;
use std::time::Instant;

use alluvium::{Db, Plan, PlanChoice};
use alluvium_base::units::format_bytes;
use serde_json::json;

use crate::database::Database;
use crate::failure::Failure;
use crate::output::{self, JsonOption};
use crate::progress;

/// Options of `plan apply`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Name of a plan, `auto`, or a file with a plan as `alluvium plan --json` prints it
    #[arg(value_name = "PLAN")]
    plan: String,
    /// Change only this keyspace, which then keeps its plan when the database's plan changes
    #[arg(long, short, value_name = "NAME")]
    keyspace: Option<String>,
    /// Wait until all data follow the plan; otherwise they are moved whenever the database is open
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Changes the plan and prints how much remains to be moved.
pub fn run(options: &Options) -> Result<(), Failure> {
    let choice = choice(&options.plan)?;
    let db = options.database.open_existing()?;
    change(&db, options.keyspace.as_deref(), &choice)?;
    let begun = db.stats();
    let start = Instant::now();
    if options.wait {
        let spinner = progress::spinner("moving data");
        let outcome = db.wait_idle();
        spinner.finish_and_clear();
        outcome?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let stats = db.stats();
    db.close()?;
    let object = json!({"plan": options.plan, "begun": begun.plan_changes, "left": stats.plan_changes,
        "seconds": seconds});
    options.output.print(&object, || {
        let left: u64 = stats.plan_changes.iter().map(|change| change.bytes_left).sum();
        let to_move: u64 = begun.plan_changes.iter().map(|change| change.bytes_left).sum();
        match (options.wait, stats.plan_changes.is_empty()) {
            (true, true) => {
                format!("all data follow the plan: {} in {seconds:.1} s\n", format_bytes(to_move))
            }
            (_, true) => "nothing needs to be moved\n".to_owned(),
            _ => format!(
                "the plan is in effect; {} are moved while the database is open\n\n{}",
                format_bytes(left),
                output::plan_changes(&stats)
            ),
        }
    })
}

fn change(db: &Db, keyspace: Option<&str>, choice: &PlanChoice) -> Result<(), Failure> {
    let Some(name) = keyspace else { return Ok(db.change_plan(choice.clone())?) };
    if !db.keyspace_names().iter().any(|present| present == name) {
        return Err(Failure::Failed(format!("there is no keyspace {name:?}")));
    }
    match choice {
        PlanChoice::Fixed(plan) => Ok(db.keyspace(name)?.change_plan(plan)?),
        PlanChoice::Auto => Err(Failure::Usage("auto is for all keyspaces of a database".to_owned())),
    }
}

/// The plan with this name, or in this file.
fn choice(text: &str) -> Result<PlanChoice, Failure> {
    if text == "auto" {
        return Ok(PlanChoice::Auto);
    }
    let unknown = match Plan::named(text) {
        Ok(plan) => return Ok(plan.into()),
        Err(unknown) => unknown,
    };
    if !Path::new(text).is_file() {
        return Err(Failure::Usage(format!("{unknown}, auto; there is no file of this name either")));
    }
    let bad = |reason: String| Failure::Failed(format!("{text} contains no plan: {reason}"));
    let content = std::fs::read_to_string(text).map_err(|error| bad(error.to_string()))?;
    let plan = Plan::from_json(&content).map_err(|error| bad(error.to_string()))?;
    Ok(plan.into())
}
