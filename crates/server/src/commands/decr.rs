//! `DECR key`

use super::incrby::add;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "decr",
    arity: 2,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Decrement the integer value of a key by one",
    syntax: "key",
    handler: decr,
    ..Command::DEFAULT
};

fn decr(context: &mut Context<'_>) -> Result<(), Failure> {
    add(context, -1)
}
