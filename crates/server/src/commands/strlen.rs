//! `STRLEN key`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "strlen",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.2.0",
    summary: "Get the length of the value of a key",
    syntax: "key",
    handler: strlen,
    ..Command::DEFAULT
};

fn strlen(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut bytes = 0;
    context.store().get(&context.arguments[1], &mut |found| bytes = found.value.len())?;
    context.reply.count(bytes);
    Ok(())
}
