//! `APPEND key value`

use super::{Command, Context, Failure};
use crate::changes::Event;

pub(super) const COMMAND: Command = Command {
    name: "append",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.0.0",
    complexity: "O(n) in the length of what is appended, amortized",
    summary: "Append a value to a key",
    syntax: "key value",
    handler: append,
    ..Command::DEFAULT
};

fn append(context: &mut Context<'_>) -> Result<(), Failure> {
    let bytes = context.store().append(&context.arguments[1], &context.arguments[2])?;
    context.changed(1, Event::APPEND);
    context.reply.count(bytes);
    Ok(())
}
