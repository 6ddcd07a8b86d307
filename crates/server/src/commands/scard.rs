//! `SCARD key`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "scard",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Get the number of members of a set",
    syntax: "key",
    handler: scard,
    ..Command::DEFAULT
};

fn scard(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut len = 0;
    members::read(context, &context.arguments[1], Kind::Set, &mut |members| {
        len = members.map_or(0, |members| members.len());
        Ok(())
    })?;
    context.reply.count(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(())
}
