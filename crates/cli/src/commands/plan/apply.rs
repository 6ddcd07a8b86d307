//! `alluvium plan apply`: gives a database another plan.

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
    /// Give it to this keyspace alone, which then keeps it whatever the database's is
    #[arg(long, short, value_name = "NAME")]
    keyspace: Option<String>,
    /// Wait until all data have followed; else they go on whenever the database is open
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    output: JsonOption,
}

/// Changes the plan and prints what is left to be moved.
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
            (_, true) => "nothing is to be moved\n".to_owned(),
            _ => format!(
                "the plan counts; {} are to be moved, whenever the database is open\n\n{}",
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

/// The plan of this name, or in this file.
fn choice(text: &str) -> Result<PlanChoice, Failure> {
    if text == "auto" {
        return Ok(PlanChoice::Auto);
    }
    let unknown = match Plan::named(text) {
        Ok(plan) => return Ok(plan.into()),
        Err(unknown) => unknown,
    };
    if !Path::new(text).is_file() {
        return Err(Failure::Usage(format!("{unknown}, auto; nor is there a file of this name")));
    }
    let bad = |reason: String| Failure::Failed(format!("{text} holds no plan: {reason}"));
    let content = std::fs::read_to_string(text).map_err(|error| bad(error.to_string()))?;
    let plan = Plan::from_json(&content).map_err(|error| bad(error.to_string()))?;
    Ok(plan.into())
}
