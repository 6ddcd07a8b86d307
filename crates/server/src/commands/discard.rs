//! `DISCARD`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "discard",
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    group: "transactions",
    since: "2.0.0",
    complexity: "O(n) in the number of queued commands",
    summary: "Discard all commands issued after MULTI",
    handler: discard,
    ..Command::DEFAULT
};

fn discard(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.transaction.take().ok_or(Failure::Fixed("ERR DISCARD without MULTI"))?;
    context.session.watched.clear();
    context.reply.ok();
    Ok(())
}
