//! `MONITOR`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "monitor",
    arity: 1,
    flags: &["admin", "noscript", "loading", "stale"],
    group: "server",
    complexity: "O(1), and a message for each command that is executed",
    summary: "Listen for all requests received by the server in real time",
    handler: monitor,
    ..Command::DEFAULT
};

fn monitor(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.is_in_transaction {
        return Err(Failure::Fixed("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let session = &mut *context.session;
    if !session.is_monitor
        && let Some(address) = session.address.clone()
    {
        session.is_monitor = true;
        context.shared.monitors.add(address, &context.shared.observers);
    }
    context.reply.ok();
    Ok(())
}
