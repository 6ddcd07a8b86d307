//! `MSETNX key value [key value ...]`

use super::{Command, Context, Failure};
use crate::changes::Event;

pub(super) const COMMAND: Command = Command {
    name: "msetnx",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, -1, 2),
    group: "string",
    since: "1.0.1",
    complexity: "O(n) in the number of keys",
    summary: "Set multiple keys to multiple values, only if none of the keys exist",
    syntax: "key value [key value ...]",
    handler: msetnx,
    ..Command::DEFAULT
};

fn msetnx(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    if arguments.len().is_multiple_of(2) {
        return Err(Failure::arity("msetnx"));
    }
    // A transaction keeps them twice.
    context.admit_writes(arguments.len())?;
    let database = context.session.database;
    let mut is_set = false;
    context.databases.atomically(&mut |inside| {
        let inside = inside.database(database);
        is_set = false;
        let keys = || arguments.from(1).iter().step_by(2);
        for key in keys() {
            if inside.contains(key)? {
                return Ok(());
            }
        }
        is_set = true;
        inside.insert_many(&mut keys().zip(arguments.from(2).iter().step_by(2)))
    })?;
    if is_set {
        arguments.from(1).iter().step_by(2).for_each(|key| context.changed_key(key, Event::SET));
    }
    context.reply.integer(is_set.into());
    Ok(())
}
