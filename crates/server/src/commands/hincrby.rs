//! `HINCRBY key field increment`

use alluvium_protocol::integer;

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hincrby",
    arity: 4,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1)",
    summary: "Increment the integer value of a field of a hash by the given number",
    syntax: "key field increment",
    handler: hincrby,
    ..Command::DEFAULT
};

fn hincrby(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let increment = context.integer(3)?;
    let mut outcome = Err(Failure::NOT_AN_INTEGER);
    members::write(context, &arguments[1], Kind::Hash, &mut |hash| {
        outcome = sum(hash.get(&arguments[2])?.as_deref(), increment);
        if let Ok(sum) = outcome {
            let mut text = Vec::with_capacity(integer::TEXT_BYTES_MAX);
            integer::write(sum, &mut text);
            hash.insert(&arguments[2], &text)?;
        }
        Ok(())
    })?;
    let sum = outcome?;
    context.changed(1, Event::HINCRBY);
    context.reply.integer(sum);
    Ok(())
}

fn sum(before: Option<&[u8]>, increment: i64) -> Result<i64, Failure> {
    let before =
        before.map_or(Some(0), integer::parse).ok_or(Failure::Fixed("ERR hash value is not an integer"))?;
    before.checked_add(increment).ok_or(Failure::Fixed("ERR increment or decrement would overflow"))
}
