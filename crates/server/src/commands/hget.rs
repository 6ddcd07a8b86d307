//! `HGET key field`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hget",
    arity: 3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1)",
    summary: "Get the value of a field of a hash",
    syntax: "key field",
    handler: hget,
    ..Command::DEFAULT
};

fn hget(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut value = None;
    members::read(context, &context.arguments[1], Kind::Hash, &mut |hash| {
        value = hash.map(|hash| hash.get(&context.arguments[2])).transpose()?.flatten();
        Ok(())
    })?;
    context.reply.optional_bulk(value.as_deref());
    Ok(())
}
