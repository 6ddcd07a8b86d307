//! `RESET`

use std::sync::Arc;

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "reset",
    arity: 1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    since: "6.2.0",
    summary: "Reset the connection",
    handler: reset,
    ..Command::DEFAULT
};

fn reset(context: &mut Context<'_>) -> Result<(), Failure> {
    context.shared.leave(context.session);
    context.session.reset(Arc::clone(context.shared.users.default()));
    context.reply.set_version(context.session.version);
    context.reply.simple("RESET");
    Ok(())
}
