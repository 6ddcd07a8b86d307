//! `SUNIONSTORE destination key [key ...]`

use super::set_operation::{Operation, store};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "sunionstore",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, -1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members of all sets",
    summary: "Store the union of several sets",
    syntax: "destination key [key ...]",
    handler: sunionstore,
    ..Command::DEFAULT
};

fn sunionstore(context: &mut Context<'_>) -> Result<(), Failure> {
    store(context, Operation::Union)
}
