//! `MULTI`

use super::{Command, Context, Failure};
use crate::queued_commands::QueuedCommands;

pub(super) const COMMAND: Command = Command {
    name: "multi",
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    group: "transactions",
    since: "1.2.0",
    summary: "Start a transaction",
    handler: multi,
    ..Command::DEFAULT
};

fn multi(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.session.transaction.is_some() {
        return Err(Failure::Fixed("ERR MULTI calls can not be nested"));
    }
    context.session.transaction = Some(QueuedCommands::default());
    context.reply.ok();
    Ok(())
}
