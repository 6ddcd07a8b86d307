//! `DEL key [key ...]`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::data;
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "del",
    arity: -2,
    flags: &["write"],
    keys: (1, -1, 1),
    complexity: "O(n) in the number of keys",
    summary: "Delete keys",
    syntax: "key [key ...]",
    handler: del,
    ..Command::DEFAULT
};

/// Deletes each key separately: an error leaves the keys before it deleted, and only one of several clients counts a
/// key.
pub(super) fn del(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut deleted = 0;
    for key in context.arguments.from(1).iter() {
        let (mut existed, mut removed) = (false, None);
        context.store().update_any(key, &mut |current| {
            existed = current.is_some();
            removed = current.and_then(|found| data::id_of(found.kind, found.value));
            if existed { Change::Remove } else { Change::Keep }
        })?;
        if let Some(id) = removed {
            context.store().discard_collection(id)?;
        }
        if existed {
            context.changed_key(key, Event::DEL);
        }
        deleted += usize::from(existed);
    }
    context.reply.count(deleted);
    Ok(())
}
