//! `GET key`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "get",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Get the value of a key",
    syntax: "key",
    handler: get,
    ..Command::DEFAULT
};

/// In the table for completeness: the worker takes gets out of the stream before dispatch and looks them up together.
fn get(context: &mut Context<'_>) -> Result<(), Failure> {
    let key = &context.arguments[1];
    context.store().get_many(&[key], &mut |_, value| context.reply.optional_bulk(value))?;
    Ok(())
}
