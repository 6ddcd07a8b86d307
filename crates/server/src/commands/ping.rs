//! `PING [message]`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "ping",
    arity: -1,
    flags: &["fast"],
    group: "connection",
    summary: "Ping the server",
    syntax: "[message]",
    handler: ping,
    ..Command::DEFAULT
};

fn ping(context: &mut Context<'_>) -> Result<(), Failure> {
    match context.arguments.len() {
        1 | 2 if context.session.takes_only_messages() => {
            context.reply.array(2);
            context.reply.bulk(b"pong");
            context.reply.bulk(context.arguments.get(1).unwrap_or_default());
        }
        1 => context.reply.simple("PONG"),
        2 => context.reply.bulk(&context.arguments[1]),
        _ => return Err(Failure::arity("ping")),
    }
    Ok(())
}
