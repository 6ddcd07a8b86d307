//! `QUIT`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "quit",
    arity: -1,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    summary: "Close the connection",
    handler: quit,
    ..Command::DEFAULT
};

fn quit(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.closing = true;
    context.reply.ok();
    Ok(())
}
