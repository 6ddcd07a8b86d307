//! `SDIFF key [key ...]`

use super::set_operation::{Operation, reply};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "sdiff",
    arity: -2,
    flags: &["readonly"],
    keys: (1, -1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members of all sets",
    summary: "Get the difference of several sets",
    syntax: "key [key ...]",
    handler: sdiff,
    ..Command::DEFAULT
};

fn sdiff(context: &mut Context<'_>) -> Result<(), Failure> {
    let keys = context.arguments.from(1);
    reply(context, Operation::Difference, keys)
}
