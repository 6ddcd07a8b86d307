//! `SETNX key value`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "setnx",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Set the value of a key if there is none",
    syntax: "key value",
    handler: setnx,
    ..Command::DEFAULT
};

fn setnx(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut is_new = false;
    let value = &context.arguments[2];
    context.store().update_any(&context.arguments[1], &mut |found| {
        is_new = found.is_none();
        if is_new { Change::Insert(value.to_vec(), Keep::Nothing) } else { Change::Keep }
    })?;
    if is_new {
        context.changed(1, Event::SET);
    }
    context.reply.integer(i64::from(is_new));
    Ok(())
}
