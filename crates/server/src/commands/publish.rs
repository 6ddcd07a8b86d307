//! `PUBLISH channel message`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "publish",
    arity: 3,
    flags: &["pubsub", "loading", "stale", "fast"],
    group: "pubsub",
    since: "2.0.0",
    complexity: "O(n + m) in the number of subscribers of the channel and of patterns of all clients",
    summary: "Post a message to a channel",
    syntax: "channel message",
    handler: publish,
    ..Command::DEFAULT
};

fn publish(context: &mut Context<'_>) -> Result<(), Failure> {
    let (channel, message) = (&context.arguments[1], &context.arguments[2]);
    let receivers = context.shared.subscribers.publish(channel, message, context.outbox);
    context.reply.count(receivers);
    Ok(())
}
