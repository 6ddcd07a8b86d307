//! `CLIENT PAUSE timeout [WRITE|ALL]` and `CLIENT UNPAUSE`

use std::time::Duration;

use super::{ADMIN_FLAGS, CONNECTION};
use crate::commands::{Command, Context, Failure};
use crate::pause::Paused;

pub(super) const PAUSE: Command = Command {
    name: "pause",
    arity: -3,
    flags: ADMIN_FLAGS,
    since: "2.9.50",
    summary: "Suspend all, or just write, clients for <timeout> milliseconds",
    syntax: "<timeout> [WRITE|ALL]",
    handler: pause,
    ..CONNECTION
};

pub(super) const UNPAUSE: Command = Command {
    name: "unpause",
    arity: 2,
    flags: ADMIN_FLAGS,
    since: "6.2.0",
    complexity: "O(n) in the number of paused connections",
    summary: "Stop the current client pause, resuming traffic",
    handler: unpause,
    ..CONNECTION
};

fn pause(context: &mut Context<'_>) -> Result<(), Failure> {
    let paused = match context.arguments.len() {
        3 => Paused::All,
        4 if context.is_word(3, "write") => Paused::Writes,
        4 if context.is_word(3, "all") => Paused::All,
        4 => return Err(Failure::Fixed("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        _ => return Err(Failure::SYNTAX),
    };
    let timeout =
        context.integer(2).map_err(|_| Failure::Fixed("ERR timeout is not an integer or out of range"))?;
    let timeout = u64::try_from(timeout).map_err(|_| Failure::Fixed("ERR timeout is negative"))?;
    context.shared.pause.begin(Duration::from_millis(timeout), paused);
    context.reply.ok();
    Ok(())
}

fn unpause(context: &mut Context<'_>) -> Result<(), Failure> {
    context.shared.pause.end();
    context.shared.connected.wake();
    context.reply.ok();
    Ok(())
}
