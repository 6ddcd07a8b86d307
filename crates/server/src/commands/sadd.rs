//! `SADD key member [member ...]`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "sadd",
    arity: -3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(1) for each member",
    summary: "Add members to a set",
    syntax: "key member [member ...]",
    handler: sadd,
    ..Command::DEFAULT
};

fn sadd(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let mut added = 0;
    members::write(context, &arguments[1], Kind::Set, &mut |set| {
        added = 0;
        for member in arguments.from(2).iter() {
            added += usize::from(set.insert(member, b"")?);
        }
        Ok(())
    })?;
    if added > 0 {
        context.changed(1, Event::SADD);
    }
    context.reply.count(added);
    Ok(())
}
