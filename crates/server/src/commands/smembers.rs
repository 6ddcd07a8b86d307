//! `SMEMBERS key`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "smembers",
    arity: 2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members",
    summary: "Get all members of a set",
    syntax: "key",
    handler: smembers,
    ..Command::DEFAULT
};

fn smembers(context: &mut Context<'_>) -> Result<(), Failure> {
    let members = members::collect(context, &context.arguments[1], Kind::Set)?;
    context.reply.set(members.len());
    members.iter().for_each(|(member, _)| context.reply.bulk(member));
    Ok(())
}
