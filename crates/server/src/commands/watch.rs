//! `WATCH key [key ...]`

use super::{Command, Context, Failure};
use crate::session::Watched;

pub(super) const COMMAND: Command = Command {
    name: "watch",
    arity: -2,
    flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
    keys: (1, -1, 1),
    group: "transactions",
    since: "2.2.0",
    complexity: "O(1) for every key",
    summary: "Watch the given keys to determine execution of the MULTI/EXEC block",
    syntax: "key [key ...]",
    handler: watch,
    ..Command::DEFAULT
};

/// Maximum number of keys that a client watches at a time: each takes its bytes and 128 more.
const WATCHED_MAX: usize = 65_536;

fn watch(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.session.transaction.is_some() {
        return Err(Failure::Fixed("ERR WATCH inside MULTI is not allowed"));
    }
    let (database, store) = (context.session.database, context.store());
    for key in context.arguments.from(1).iter() {
        let is_known = context
            .session
            .watched
            .iter()
            .any(|watched| watched.database == database && *watched.key == *key);
        if is_known {
            continue;
        }
        if context.session.watched.len() >= WATCHED_MAX {
            return Err(Failure::Fixed("ERR too many watched keys"));
        }
        let watch = store.watch(key)?;
        context.session.watched.push(Watched { database, key: key.into(), watch });
    }
    context.reply.ok();
    Ok(())
}
