//! `HLEN key`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hlen",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1)",
    summary: "Get the number of fields of a hash",
    syntax: "key",
    handler: hlen,
    ..Command::DEFAULT
};

fn hlen(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut len = 0;
    members::read(context, &context.arguments[1], Kind::Hash, &mut |members| {
        len = members.map_or(0, |members| members.len());
        Ok(())
    })?;
    context.reply.count(usize::try_from(len).unwrap_or(usize::MAX));
    Ok(())
}
