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
    let mut value = None;
    context.store().get(&context.arguments[1], &mut |found| value = Some(found.value.to_vec()))?;
    context.reply.optional_bulk(value.as_deref());
    Ok(())
}
