//! `RENAME key newkey`

use super::transfer::{Outcome, Place, Source, transfer};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "rename",
    arity: 3,
    flags: &["write"],
    keys: (1, 2, 1),
    complexity: "O(n) in the length of the value",
    summary: "Rename a key, replacing the key that has the new name",
    syntax: "key newkey",
    handler: |context| {
        rename(context, true)?;
        context.reply.ok();
        Ok(())
    },
    ..Command::DEFAULT
};

/// Returns whether the key has a new name.
pub(super) fn rename(context: &mut Context<'_>, replaces: bool) -> Result<bool, Failure> {
    const NO_SUCH_KEY: Failure = Failure::Fixed("ERR no such key");
    let database = context.session.database;
    let [from, to] = [1, 2].map(|at| Place { database, key: context.arguments.get(at).unwrap_or_default() });
    if from.key == to.key {
        return if context.store().contains(from.key)? { Ok(false) } else { Err(NO_SUCH_KEY) };
    }
    match transfer(context, from, to, Source::Goes, replaces)? {
        Outcome::Done => Ok(true),
        Outcome::Busy => Ok(false),
        Outcome::NoSource => Err(NO_SUCH_KEY),
    }
}
