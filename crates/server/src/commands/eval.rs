//! `EVAL script numkeys [key ...] [arg ...]`

use std::sync::Arc;

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::reply_room::RoomState;
use crate::scripting::{self, Outcome, Program, Request};
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
    execute_script(context, Program::Script { digest, source }, is_read_only)
}

/// Executes the script whose digest is in the request.
pub(super) fn eval_digest(context: &mut Context<'_>, is_read_only: bool) -> Result<(), Failure> {
    let (digest, source) = context
        .shared
        .scripts
        .get(&context.arguments[1])
        .ok_or(Failure::Fixed("NOSCRIPT No matching script. Please use EVAL."))?;
    execute_script(context, Program::Script { digest, source: &source }, is_read_only)
}

/// The error when no more scripts are kept.
pub(super) const FULL: &str = "ERR too many scripts are cached: see SCRIPT FLUSH";

fn execute_script(
    context: &mut Context<'_>,
    program: Program<'_>,
    is_read_only: bool,
) -> Result<(), Failure> {
    let keys = keys_len(context, Failure::NOT_AN_INTEGER)?;
    show(context);
    execute(context, program, keys, is_read_only)
}

/// Shows the request to monitors, in front of the commands of the script.
pub(super) fn show(context: &mut Context<'_>) {
    if let Some(command) = super::find(&context.arguments[0]) {
        super::observe::show(command, context);
    }
}

/// Number of the keys that the request names.
pub(super) fn keys_len(context: &Context<'_>, no_number: Failure) -> Result<usize, Failure> {
    let keys = integer::parse(&context.arguments[2]).ok_or(no_number)?;
    if keys > context.arguments.len() as i64 - 3 {
        return Err(Failure::Fixed("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Failure::Fixed("ERR Number of keys can't be negative"))
}

/// Executes a script or a function, as one transaction.
pub(super) fn execute(
    context: &mut Context<'_>,
    program: Program<'_>,
    keys: usize,
    is_read_only: bool,
) -> Result<(), Failure> {
    let arguments = context.arguments;
    let tracking = context.session.tracking.clone().filter(Reading::registers);
    let tracking = tracking.map(|reading| Reading { mode: Mode::All, ..reading });
    let (start, messages) = (context.reply.buffered_bytes(), context.outbox.len());
    let (databases, mut stopped, mut uncounted, mut failed) = (context.databases, None, None, None);
    let committed = databases.atomically(&mut |inside| {
        context.reply.rewind(start);
        context.outbox.truncate(messages);
        (uncounted, failed) = (None, None);
        let request = Request {
            program,
            command: arguments,
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
            Outcome::Done { uncounted: error } => match context.room_state() {
                RoomState::Enough => {
                    uncounted = error;
                    Ok(())
                }
                _ => Err("there is no memory for the reply".into()),
            },
            Outcome::Failed { text, is_counted } => {
                failed = Some(if is_counted { Failure::Counted(text) } else { Failure::Text(text) });
                Ok(())
            }
            Outcome::Stopped(text) => {
                stopped = Some(text);
                Err("the script was stopped".into())
            }
        }
    });
    match (committed, stopped) {
        (Ok(()), _) => {
            if let Some(text) = uncounted {
                context.shared.error_counts.add(&text);
            }
            failed.map_or(Ok(()), Err)
        }
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
