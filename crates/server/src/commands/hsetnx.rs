//! `HSETNX key field value`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hsetnx",
    arity: 4,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1)",
    summary: "Set the value of a field of a hash if there is none",
    syntax: "key field value",
    handler: hsetnx,
    ..Command::DEFAULT
};

fn hsetnx(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let mut is_new = false;
    members::write(context, &arguments[1], Kind::Hash, &mut |hash| {
        is_new = hash.get(&arguments[2])?.is_none();
        if is_new {
            hash.insert(&arguments[2], &arguments[3])?;
        }
        Ok(())
    })?;
    if is_new {
        context.changed(1, Event::HSET);
    }
    context.reply.integer(i64::from(is_new));
    Ok(())
}
