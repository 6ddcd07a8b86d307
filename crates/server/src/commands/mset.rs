//! `MSET key value [key value ...]`

use super::{Command, Context, Failure};
use crate::changes::Event;

pub(super) const COMMAND: Command = Command {
    name: "mset",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, -1, 2),
    group: "string",
    since: "1.0.1",
    complexity: "O(n) in the number of keys",
    summary: "Set multiple keys to multiple values, all or none",
    syntax: "key value [key value ...]",
    handler: mset,
    ..Command::DEFAULT
};

fn mset(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::arity("mset"));
    }
    context.admit_writes(arguments.len() / 2)?;
    let keys = arguments.from(1).iter().step_by(2);
    let values = arguments.from(2).iter().step_by(2);
    context.store().insert_many(&mut keys.zip(values))?;
    arguments.from(1).iter().step_by(2).for_each(|key| context.changed_key(key, Event::SET));
    context.reply.ok();
    Ok(())
}
