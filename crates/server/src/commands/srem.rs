//! `SREM key member [member ...]`

use super::{Command, Context, Failure, members};
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
    let mut removed = 0;
    members::write(context, &arguments[1], Kind::Set, &mut |set| {
        removed = 0;
        for member in arguments.from(2).iter() {
            removed += usize::from(set.remove(member)?);
        }
        Ok(())
    })?;
    context.reply.count(removed);
    Ok(())
}
