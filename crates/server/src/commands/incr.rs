//! `INCR key`

use super::incrby::add;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "incr",
    arity: 2,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Increment the integer value of a key by one",
    syntax: "key",
    handler: incr,
    ..Command::DEFAULT
};

fn incr(context: &mut Context<'_>) -> Result<(), Failure> {
    add(context, 1)
}
