//! `EXEC`

use alluvium_protocol::{Parser, Progress};

use super::dispatch::{dispatch, write_failure};
use super::{Command, Context, Failure};
use crate::reply_room::RoomState;
use crate::store::{Databases, StoreError};

pub(super) const COMMAND: Command = Command {
    name: "exec",
    arity: 1,
    flags: &["noscript", "loading", "stale", "skip_slowlog"],
    group: "transactions",
    since: "1.2.0",
    complexity: "Depends on commands in the transaction",
    summary: "Execute all commands issued after MULTI",
    handler: exec,
    ..Command::DEFAULT
};

/// Executes the queued commands at one moment: no other client sees some of their writes, and after a crash all are
/// there or none. They run again if a key that they read was written meanwhile.
fn exec(context: &mut Context<'_>) -> Result<(), Failure> {
    if let Some(queue) = context.session.transaction.as_ref().filter(|queue| queue.has_writes)
        && let Err(failure) = context.admit_writes(2 * queue.len)
    {
        if !matches!(failure, Failure::Waits) {
            context.session.transaction = None;
            context.session.watched.clear();
        }
        return Err(failure);
    }
    let queue = context.session.transaction.take().ok_or(Failure::Fixed("ERR EXEC without MULTI"))?;
    let watched = std::mem::take(&mut context.session.watched);
    if queue.has_failed {
        return Err(Failure::Fixed("EXECABORT Transaction discarded because of previous errors."));
    }
    let (start, database) = (context.reply.buffered_bytes(), context.session.database);
    let (version, databases) = (context.session.version, context.databases);
    let messages = context.outbox.len();
    let outcome = databases.atomically(&mut |inside| {
        context.reply.rewind(start);
        context.outbox.truncate(messages);
        context.reply.set_version(version);
        context.session.version = version;
        context.session.database = database;
        for watched in watched.iter() {
            if !inside.database(watched.database).is_unchanged(&watched.key, &watched.watch)? {
                context.reply.null_array();
                return Ok(());
            }
        }
        context.reply.array(queue.len);
        execute_all(context, &queue.frames, inside)
    });
    outcome.map_err(|error| {
        // Nothing has happened.
        context.session.database = database;
        context.outbox.truncate(messages);
        Failure::Text(format!("EXECABORT Transaction discarded because of: {error}"))
    })
}

/// Executes commands one after the other. An error is the reply of its command, and the others take effect.
fn execute_all(context: &mut Context<'_>, frames: &[u8], inside: &dyn Databases) -> Result<(), StoreError> {
    let mut parser = Parser::new(context.shared.options.limits);
    let mut at = 0;
    while let Ok(Progress::Complete { consumed }) = parser.parse(&frames[at..]) {
        let mut inner = Context {
            arguments: parser.arguments(&frames[at..]),
            reply: context.reply.reborrow(),
            session: &mut *context.session,
            shared: context.shared,
            databases: inside,
            outbox: &mut *context.outbox,
            room: context.room,
            is_in_transaction: true,
        };
        let before = inner.reply.buffered_bytes();
        if let Err(failure) = dispatch(&mut inner) {
            inner.reply.rewind(before);
            #[cfg(feature = "scripting")]
            if let Failure::Aborted(text) = failure {
                return Err(text.into());
            }
            write_failure(&mut inner, failure);
        }
        let version = inner.reply.version();
        context.reply.set_version(version);
        at += consumed;
        match context.room_state() {
            RoomState::Enough => {}
            RoomState::Waits => return Err("the memory for clients is in use".into()),
            RoomState::TooLong => {
                context.session.closing = true;
                return Err("the replies exceed the output limit of this server".into());
            }
        }
        if at == frames.len() {
            break;
        }
    }
    debug_assert_eq!(at, frames.len(), "queued commands are whole requests");
    Ok(())
}
