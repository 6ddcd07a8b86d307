//! `EXISTS key [key ...]`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "exists",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: (1, -1, 1),
    complexity: "O(n) in the number of keys",
    summary: "Count the keys that exist",
    syntax: "key [key ...]",
    handler: exists,
    ..Command::DEFAULT
};

/// A key given twice counts twice, as in Redis.
pub(super) fn exists(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut found = 0;
    for key in context.arguments.from(1).iter() {
        found += usize::from(context.store().contains(key)?);
    }
    context.reply.count(found);
    Ok(())
}
