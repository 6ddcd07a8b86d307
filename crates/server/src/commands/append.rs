//! `APPEND key value`

use super::{Command, Context, Failure};
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "append",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.0.0",
    complexity: "O(n) in the length of the new value",
    summary: "Append a value to a key",
    syntax: "key value",
    handler: append,
    ..Command::DEFAULT
};

fn append(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut bytes = 0;
    context.store().update(&context.arguments[1], &mut |current| {
        let value = [current.unwrap_or_default(), &context.arguments[2]].concat();
        bytes = value.len();
        Change::Insert(value)
    })?;
    context.reply.count(bytes);
    Ok(())
}
