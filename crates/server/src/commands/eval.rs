//! `EVAL script numkeys [key ...] [arg ...]`

use std::sync::Arc;

use super::{Command, Context, Failure};
use crate::reply_room::RoomState;
use crate::scripting::{self, Digest, Outcome, Request};
use crate::tracking::{Mode, Reading};

pub(super) const COMMAND: Command = Command {
    name: "eval",
    arity: -3,
    flags: &[
        "write",
        "noscript",
        "stale",
        "skip_monitor",
        "may_replicate",
        "no_mandatory_keys",
        "movablekeys",
    ],
    group: "scripting",
    since: "2.6.0",
    complexity: "Depends on the script that is executed",
    summary: "Execute a Lua script",
    syntax: "script numkeys [key ...] [arg ...]",
    handler: eval,
    ..Command::DEFAULT
};

fn eval(context: &mut Context<'_>) -> Result<(), Failure> {
    eval_source(context, false)
}

/// Executes the script of the request and keeps it for `EVALSHA`.
pub(super) fn eval_source(context: &mut Context<'_>, is_read_only: bool) -> Result<(), Failure> {
    let source = context.arguments.get(1).unwrap_or_default();
    let digest = context.shared.scripts.insert(source).ok_or(Failure::Fixed(FULL))?;
    execute(context, digest, source, is_read_only)
}

/// Executes the script whose digest is in the request.
pub(super) fn eval_digest(context: &mut Context<'_>, is_read_only: bool) -> Result<(), Failure> {
    let (digest, source) = context
        .shared
        .scripts
        .get(&context.arguments[1])
        .ok_or(Failure::Fixed("NOSCRIPT No matching script. Please use EVAL."))?;
    execute(context, digest, &source, is_read_only)
}

/// The error when no more scripts are kept.
pub(super) const FULL: &str = "ERR too many scripts are cached: see SCRIPT FLUSH";

fn execute(
    context: &mut Context<'_>,
    digest: Digest,
    source: &[u8],
    is_read_only: bool,
) -> Result<(), Failure> {
    let arguments = context.arguments;
    let keys = context.integer(2)?;
    if keys > arguments.len() as i64 - 3 {
        return Err(Failure::Fixed("ERR Number of keys can't be greater than number of args"));
    }
    let keys = usize::try_from(keys).map_err(|_| Failure::Fixed("ERR Number of keys can't be negative"))?;
    if let Some(command) = super::find(&arguments[0]) {
        // In front of the commands of the script.
        super::observe::show(command, context);
    }
    let tracking = context.session.tracking.clone().filter(Reading::registers);
    let tracking = tracking.map(|reading| Reading { mode: Mode::All, ..reading });
    let (start, messages) = (context.reply.buffered_bytes(), context.outbox.len());
    let (databases, mut stopped) = (context.databases, None);
    let committed = databases.atomically(&mut |inside| {
        context.reply.rewind(start);
        context.outbox.truncate(messages);
        let request = Request {
            digest,
            source,
            keys: arguments.range(3..3 + keys),
            arguments: arguments.from(3 + keys),
            is_read_only,
            database: context.session.database,
            session_id: context.session.id,
            tracking: tracking.clone(),
            user: Arc::clone(&context.session.user),
            shared: context.shared,
            databases: inside,
            outbox: &mut *context.outbox,
        };
        match scripting::run(request, &mut context.reply) {
            Outcome::Done => match context.room_state() {
                RoomState::Enough => Ok(()),
                _ => Err("there is no memory for the reply".into()),
            },
            Outcome::Failed(text) => {
                context.reply.error(text);
                Ok(())
            }
            Outcome::Stopped(text) => {
                stopped = Some(text);
                Err("the script was stopped".into())
            }
        }
    });
    match (committed, stopped) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(text)) => {
            context.outbox.truncate(messages);
            Err(Failure::Aborted(text))
        }
        (Err(error), None) => {
            context.outbox.truncate(messages);
            Err(error.into())
        }
    }
}
