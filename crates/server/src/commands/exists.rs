//! `EXISTS key [key ...]`

use super::mget::MOMENT_KEYS_MAX;
use super::{Command, Context, Failure};
use crate::store::{Databases, StoreError};

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
    let (keys, number) = (context.arguments.from(1), context.session.database);
    let mut found = 0;
    let mut count = |databases: &dyn Databases| -> Result<(), StoreError> {
        found = 0;
        for key in keys.iter() {
            found += usize::from(databases.database(number).contains(key)?);
        }
        Ok(())
    };
    if keys.len() == 1 || keys.len() > MOMENT_KEYS_MAX {
        count(context.databases)?;
    } else {
        context.databases.at_one_moment(&mut count)?;
    }
    context.reply.count(found);
    Ok(())
}
