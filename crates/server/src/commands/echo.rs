//! `ECHO message`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "echo",
    arity: 2,
    flags: &["fast"],
    group: "connection",
    summary: "Echo the given string",
    syntax: "message",
    handler: echo,
    ..Command::DEFAULT
};

fn echo(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.bulk(&context.arguments[1]);
    Ok(())
}
