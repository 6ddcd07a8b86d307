//! `DECRBY key decrement`

use super::incrby::add;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "decrby",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Decrement the integer value of a key by the given number",
    syntax: "key decrement",
    handler: decrby,
    ..Command::DEFAULT
};

fn decrby(context: &mut Context<'_>) -> Result<(), Failure> {
    let decrement = context.integer(2)?;
    // The only decrement whose negative is not a 64-bit number.
    let increment = decrement.checked_neg().ok_or(Failure::Fixed("ERR decrement would overflow"))?;
    add(context, increment)
}
