//! `SINTER key [key ...]`

use super::set_operation::{Operation, reply};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "sinter",
    arity: -2,
    flags: &["readonly"],
    keys: (1, -1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members of all sets",
    summary: "Get the intersection of several sets",
    syntax: "key [key ...]",
    handler: sinter,
    ..Command::DEFAULT
};

fn sinter(context: &mut Context<'_>) -> Result<(), Failure> {
    let keys = context.arguments.from(1);
    reply(context, Operation::Intersection, keys)
}
