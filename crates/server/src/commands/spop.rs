//! `SPOP key [count]`

use alluvium_protocol::integer;

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "spop",
    arity: -2,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(n) in the number of members returned, or of the set if it is small",
    summary: "Remove and return random members of a set",
    syntax: "key [count]",
    handler: spop,
    ..Command::DEFAULT
};

fn spop(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let count = match arguments.len() {
        2 => 1,
        3 => integer::parse(&arguments[2])
            .and_then(|count| usize::try_from(count).ok())
            .ok_or(Failure::Fixed("ERR value is out of range, must be positive"))?,
        _ => return Err(Failure::SYNTAX),
    };
    let (mut picked, mut is_empty) = (members::Members::new(), false);
    members::write(context, &arguments[1], Kind::Set, &mut |set| {
        picked = members::pick_different(set, count)?;
        for (member, _) in &picked {
            set.remove(member)?;
        }
        is_empty = set.len() == 0;
        Ok(())
    })?;
    if !picked.is_empty() {
        members::removed(context, 1, Event::SPOP, is_empty);
    }
    if arguments.len() == 2 {
        context.reply.optional_bulk(picked.first().map(|(member, _)| &**member));
        return Ok(());
    }
    context.reply.set(picked.len());
    picked.iter().for_each(|(member, _)| context.reply.bulk(member));
    Ok(())
}
