//! `PERSIST key`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "persist",
    arity: 2,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    since: "2.2.0",
    summary: "Let a key not expire any more",
    syntax: "key",
    handler: persist,
    ..Command::DEFAULT
};

fn persist(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut did_expire = false;
    context.store().update_any(&context.arguments[1], &mut |found| {
        did_expire = found.is_some_and(|found| found.expires_at_ms.is_some());
        if did_expire { Change::Expire(None) } else { Change::Keep }
    })?;
    if did_expire {
        context.changed(1, Event::PERSIST);
    }
    context.reply.integer(i64::from(did_expire));
    Ok(())
}
