//! `GETSET key value`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "getset",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Set the value of a key and return the old one",
    syntax: "key value",
    handler: getset,
    ..Command::DEFAULT
};

fn getset(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut before: Option<Vec<u8>> = None;
    let value = &context.arguments[2];
    context.store().update(&context.arguments[1], &mut |found| {
        before = found.map(|found| found.value.to_vec());
        Change::Insert(value.to_vec(), Keep::Nothing)
    })?;
    context.changed(1, Event::SET);
    context.reply.optional_bulk(before.as_deref());
    Ok(())
}
