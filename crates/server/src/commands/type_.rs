//! `TYPE key`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "type",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    summary: "Determine the type stored at a key",
    syntax: "key",
    handler: type_,
    ..Command::DEFAULT
};

fn type_(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut name = "none";
    context.store().get_any(&context.arguments[1], &mut |found| name = found.kind.name())?;
    context.reply.simple(name);
    Ok(())
}
