//! `HSTRLEN key field`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hstrlen",
    arity: 3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "3.2.0",
    complexity: "O(1)",
    summary: "Get the length of the value of a field of a hash",
    syntax: "key field",
    handler: hstrlen,
    ..Command::DEFAULT
};

fn hstrlen(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut len = 0;
    members::read(context, &context.arguments[1], Kind::Hash, &mut |hash| {
        let value = hash.map(|hash| hash.get(&context.arguments[2])).transpose()?.flatten();
        len = value.map_or(0, |value| value.len());
        Ok(())
    })?;
    context.reply.count(len);
    Ok(())
}
