//! `SREM key member [member ...]`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "srem",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(1) for each member",
    summary: "Remove members from a set",
    syntax: "key member [member ...]",
    handler: srem,
    ..Command::DEFAULT
};

fn srem(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let (mut removed, mut is_empty) = (0, false);
    members::write(context, &arguments[1], Kind::Set, &mut |set| {
        removed = 0;
        for member in arguments.from(2).iter() {
            removed += usize::from(set.remove(member)?);
        }
        is_empty = set.len() == 0;
        Ok(())
    })?;
    if removed > 0 {
        members::removed(context, 1, Event::SREM, is_empty);
    }
    context.reply.count(removed);
    Ok(())
}
