//! `DBSIZE`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "dbsize",
    arity: 1,
    flags: &["readonly", "fast"],
    group: "server",
    summary: "Return about how many keys there are",
    handler: dbsize,
    ..Command::DEFAULT
};

/// Unlike Redis's, the number is an estimate where the store has not merged its newest writes yet.
fn dbsize(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.count(usize::try_from(context.store().approximate_len()).unwrap_or(usize::MAX));
    Ok(())
}
