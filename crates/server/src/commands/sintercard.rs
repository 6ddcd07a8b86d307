//! `SINTERCARD numkeys key [key ...] [LIMIT limit]`

use super::set_operation::intersection_len;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "sintercard",
    arity: -3,
    flags: &["readonly"],
    keys: (0, 0, 0),
    group: "set",
    since: "7.0.0",
    complexity: "O(n) in the number of members of all sets",
    summary: "Count the members of the intersection of several sets",
    syntax: "numkeys key [key ...] [LIMIT limit]",
    handler: sintercard,
    ..Command::DEFAULT
};

fn sintercard(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let keys = usize::try_from(context.integer(1).unwrap_or(0))
        .ok()
        .filter(|keys| *keys > 0)
        .ok_or(Failure::Fixed("ERR numkeys should be greater than 0"))?;
    if keys > arguments.len() - 2 {
        return Err(Failure::Fixed("ERR Number of keys can't be greater than number of args"));
    }
    let mut limit = 0;
    let mut at = 2 + keys;
    while at < arguments.len() {
        if !context.is_word(at, "limit") || at + 1 >= arguments.len() {
            return Err(Failure::SYNTAX);
        }
        limit = usize::try_from(context.integer(at + 1).unwrap_or(-1))
            .map_err(|_| Failure::Fixed("ERR LIMIT can't be negative"))?;
        at += 2;
    }
    let len = intersection_len(context, arguments.range(2..2 + keys))?;
    context.reply.count(if limit > 0 { len.min(limit) } else { len });
    Ok(())
}
