//! `GETDEL key`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "getdel",
    arity: 2,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "6.2.0",
    summary: "Get the value of a key and delete the key",
    syntax: "key",
    handler: getdel,
    ..Command::DEFAULT
};

fn getdel(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut before: Option<Vec<u8>> = None;
    context.store().update(&context.arguments[1], &mut |found| {
        before = found.map(|found| found.value.to_vec());
        if found.is_some() { Change::Remove } else { Change::Keep }
    })?;
    if before.is_some() {
        context.changed(1, Event::DEL);
    }
    context.reply.optional_bulk(before.as_deref());
    Ok(())
}
