//! `UNWATCH`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "unwatch",
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    group: "transactions",
    since: "2.2.0",
    summary: "Forget about all watched keys",
    handler: unwatch,
    ..Command::DEFAULT
};

fn unwatch(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.watched.clear();
    context.reply.ok();
    Ok(())
}
