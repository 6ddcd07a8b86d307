//! `SINTERSTORE destination key [key ...]`

use super::set_operation::{Operation, store};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "sinterstore",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, -1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members of all sets",
    summary: "Store the intersection of several sets",
    syntax: "destination key [key ...]",
    handler: sinterstore,
    ..Command::DEFAULT
};

fn sinterstore(context: &mut Context<'_>) -> Result<(), Failure> {
    store(context, Operation::Intersection)
}
