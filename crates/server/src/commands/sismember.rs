//! `SISMEMBER key member`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "sismember",
    arity: 3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Determine whether a value is a member of a set",
    syntax: "key member",
    handler: sismember,
    ..Command::DEFAULT
};

fn sismember(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut is_member = false;
    members::read(context, &context.arguments[1], Kind::Set, &mut |set| {
        is_member = set.map(|set| set.get(&context.arguments[2])).transpose()?.flatten().is_some();
        Ok(())
    })?;
    context.reply.integer(i64::from(is_member));
    Ok(())
}
