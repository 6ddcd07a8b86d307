//! `HDEL key field [field ...]`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hdel",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1) for each field",
    summary: "Delete fields of a hash",
    syntax: "key field [field ...]",
    handler: hdel,
    ..Command::DEFAULT
};

fn hdel(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let (mut removed, mut is_empty) = (0, false);
    members::write(context, &arguments[1], Kind::Hash, &mut |hash| {
        removed = 0;
        for member in arguments.from(2).iter() {
            removed += usize::from(hash.remove(member)?);
        }
        is_empty = hash.len() == 0;
        Ok(())
    })?;
    if removed > 0 {
        members::removed(context, 1, Event::HDEL, is_empty);
    }
    context.reply.count(removed);
    Ok(())
}
