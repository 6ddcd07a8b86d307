//! `INCRBY key increment`, and the addition that all counters share.

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "incrby",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Increment the integer value of a key by the given number",
    syntax: "key increment",
    handler: incrby,
    ..Command::DEFAULT
};

fn incrby(context: &mut Context<'_>) -> Result<(), Failure> {
    let increment = context.integer(2)?;
    add(context, increment)
}

/// Adds to the number under the first key, 0 if absent, and replies with the sum. Expiry and flags stay.
pub(super) fn add(context: &mut Context<'_>, increment: i64) -> Result<(), Failure> {
    let mut outcome = Err(Failure::NOT_AN_INTEGER);
    context.store().update(&context.arguments[1], &mut |current| {
        outcome = sum(current.map(|found| found.value), increment);
        match outcome {
            Err(_) => Change::Keep,
            Ok(sum) => {
                let mut text = Vec::with_capacity(integer::TEXT_BYTES_MAX);
                integer::write(sum, &mut text);
                Change::Insert(text, Keep::Everything)
            }
        }
    })?;
    let sum = outcome?;
    context.changed(1, Event::INCRBY);
    context.reply.integer(sum);
    Ok(())
}

fn sum(current: Option<&[u8]>, increment: i64) -> Result<i64, Failure> {
    let current = current.map_or(Some(0), integer::parse).ok_or(Failure::NOT_AN_INTEGER)?;
    current.checked_add(increment).ok_or(Failure::Fixed("ERR increment or decrement would overflow"))
}
