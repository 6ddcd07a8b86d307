//! `FLUSHALL [ASYNC|SYNC]`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "flushall",
    arity: -1,
    flags: &["write"],
    group: "server",
    complexity: "O(n) in the number of tables",
    summary: "Remove all keys of all databases",
    syntax: "[ASYNC|SYNC]",
    handler: flushall,
    ..Command::DEFAULT
};

/// The items are gone when the reply comes; their space is reclaimed after it in either mode.
fn flushall(context: &mut Context<'_>) -> Result<(), Failure> {
    check_options(context)?;
    for number in context.shared.store.opened() {
        context.databases.database(number).clear()?;
        context.outbox.cleared(number);
    }
    tracing::info!(client = context.session.client.peer(), "a client removes all keys");
    context.reply.ok();
    Ok(())
}

pub(super) fn check_options(context: &Context<'_>) -> Result<(), Failure> {
    let legal = match context.arguments.len() {
        1 => true,
        2 => context.is_word(1, "async") || context.is_word(1, "sync"),
        _ => false,
    };
    if legal { Ok(()) } else { Err(Failure::SYNTAX) }
}
