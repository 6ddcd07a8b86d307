//! `FLUSHALL [ASYNC|SYNC]`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "flushall",
    arity: -1,
    flags: &["write"],
    group: "server",
    complexity: "O(n) in the number of tables",
    summary: "Remove all keys",
    syntax: "[ASYNC|SYNC]",
    handler: flush,
    ..Command::DEFAULT
};

/// The items are gone when the reply comes; their space is reclaimed after it in either mode.
pub(super) fn flush(context: &mut Context<'_>) -> Result<(), Failure> {
    let legal = match context.arguments.len() {
        1 => true,
        2 => context.is_word(1, "async") || context.is_word(1, "sync"),
        _ => false,
    };
    if !legal {
        return Err(Failure::SYNTAX);
    }
    context.store().clear()?;
    context.reply.ok();
    Ok(())
}
