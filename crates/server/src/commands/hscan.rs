//! `HSCAN key cursor [MATCH pattern] [COUNT count]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hscan",
    arity: -3,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.8.0",
    complexity: "O(1) a call, O(n) for a complete iteration",
    summary: "Incrementally iterate the fields and values of a hash",
    syntax: "key cursor [MATCH pattern] [COUNT count]",
    handler: hscan,
    ..Command::DEFAULT
};

fn hscan(context: &mut Context<'_>) -> Result<(), Failure> {
    members::scan(context, Kind::Hash)
}
