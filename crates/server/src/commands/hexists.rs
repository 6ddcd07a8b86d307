//! `HEXISTS key field`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hexists",
    arity: 3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1)",
    summary: "Determine whether a hash has a field",
    syntax: "key field",
    handler: hexists,
    ..Command::DEFAULT
};

fn hexists(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut exists = false;
    members::read(context, &context.arguments[1], Kind::Hash, &mut |hash| {
        exists = hash.map(|hash| hash.get(&context.arguments[2])).transpose()?.flatten().is_some();
        Ok(())
    })?;
    context.reply.integer(i64::from(exists));
    Ok(())
}
