//! `SRANDMEMBER key [count]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "srandmember",
    arity: -2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members returned, or of the set if it is small",
    summary: "Get random members of a set",
    syntax: "key [count]",
    handler: srandmember,
    ..Command::DEFAULT
};

fn srandmember(context: &mut Context<'_>) -> Result<(), Failure> {
    let count = match context.arguments.len() {
        2 => None,
        3 => Some(members::count(context)?),
        _ => return Err(Failure::SYNTAX),
    };
    let picked = members::pick(context, &context.arguments[1], Kind::Set, count)?;
    if count.is_none() {
        context.reply.optional_bulk(picked.first().map(|(member, _)| &**member));
        return Ok(());
    }
    context.reply.array(picked.len());
    picked.iter().for_each(|(member, _)| context.reply.bulk(member));
    Ok(())
}
