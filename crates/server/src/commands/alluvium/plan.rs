//! `ALLUVIUM.PLAN [keyspace]`

use super::{ALLUVIUM, Command, Context, Failure, keyspace};
use crate::answer::write_report;

pub(in crate::commands) const COMMAND: Command = Command {
    name: "alluvium.plan",
    arity: -1,
    complexity: "O(1)",
    summary: "Get the plan of a keyspace, why it was chosen, and what is proposed",
    syntax: "[keyspace]",
    handler: plan,
    ..ALLUVIUM
};

fn plan(context: &mut Context<'_>) -> Result<(), Failure> {
    let report = context.shared.store.plan(&keyspace(context)?)?;
    write_report(&report, &mut context.reply);
    Ok(())
}
