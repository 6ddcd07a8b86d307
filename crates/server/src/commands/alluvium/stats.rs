//! `ALLUVIUM.STATS [keyspace]`

use super::{ALLUVIUM, Command, Context, Failure, keyspace};
use crate::answer::write_report;

pub(in crate::commands) const COMMAND: Command = Command {
    name: "alluvium.stats",
    arity: -1,
    complexity: "O(1)",
    summary: "Get the figures of the store, named as in /metrics, or those of a keyspace",
    syntax: "[keyspace]",
    handler: stats,
    ..ALLUVIUM
};

fn stats(context: &mut Context<'_>) -> Result<(), Failure> {
    let report = match context.arguments.len() {
        1 => crate::metrics::store_figures(&*context.shared.store),
        _ => context.shared.store.keyspace_figures(&keyspace(context)?)?,
    };
    write_report(&report, &mut context.reply);
    Ok(())
}
