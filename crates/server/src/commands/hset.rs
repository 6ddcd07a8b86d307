//! `HSET key field value [field value ...]`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hset",
    arity: -4,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1) for each field",
    summary: "Set the values of fields of a hash",
    syntax: "key field value [field value ...]",
    handler: hset,
    ..Command::DEFAULT
};

fn hset(context: &mut Context<'_>) -> Result<(), Failure> {
    let added = set_fields(context, "hset")?;
    context.reply.count(added);
    Ok(())
}

/// Sets the fields of the request; returns how many are new.
pub(super) fn set_fields(context: &mut Context<'_>, command: &str) -> Result<usize, Failure> {
    let arguments = context.arguments;
    if !arguments.len().is_multiple_of(2) {
        return Err(Failure::arity(command));
    }
    let mut added = 0;
    members::write(context, &arguments[1], Kind::Hash, &mut |hash| {
        added = 0;
        for (field, value) in arguments.from(2).iter().step_by(2).zip(arguments.from(3).iter().step_by(2)) {
            added += usize::from(hash.insert(field, value)?);
        }
        Ok(())
    })?;
    context.changed(1, Event::HSET);
    Ok(added)
}
