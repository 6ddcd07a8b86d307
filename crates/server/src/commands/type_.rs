//! `TYPE key`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "type",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    summary: "Determine the type stored at a key, which is a string",
    syntax: "key",
    handler: type_,
    ..Command::DEFAULT
};

fn type_(context: &mut Context<'_>) -> Result<(), Failure> {
    let exists = context.store().contains(&context.arguments[1])?;
    context.reply.simple(if exists { "string" } else { "none" });
    Ok(())
}
