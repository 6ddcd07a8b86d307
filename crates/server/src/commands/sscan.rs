//! `SSCAN key cursor [MATCH pattern] [COUNT count]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "sscan",
    arity: -3,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "set",
    since: "2.8.0",
    complexity: "O(1) a call, O(n) for a complete iteration",
    summary: "Incrementally iterate the members of a set",
    syntax: "key cursor [MATCH pattern] [COUNT count]",
    handler: sscan,
    ..Command::DEFAULT
};

fn sscan(context: &mut Context<'_>) -> Result<(), Failure> {
    members::scan(context, Kind::Set)
}
