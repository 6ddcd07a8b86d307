//! `FUNCTION …`: libraries of functions.
//!
//! Subcommands that change libraries do so at once, here and in the store, and not as a part of a transaction.

mod dump;
mod list;
mod load;
mod restore;
mod stats;

use super::{Command, Context, Failure};
use crate::scripting::{Kind, Refusal};

const FUNCTION: Command =
    Command { arity: 2, flags: &["noscript"], group: "scripting", since: "7.0.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "function",
    arity: -2,
    group: "scripting",
    since: "7.0.0",
    complexity: "Depends on subcommand",
    summary: "Manage libraries of functions",
    syntax: "subcommand",
    subcommands: &[
        Command {
            name: "delete",
            arity: 3,
            flags: &["noscript", "write", "no_multi"],
            summary: "Delete an existing library and all its functions",
            syntax: "<LIBRARY NAME>",
            handler: delete,
            ..FUNCTION
        },
        dump::COMMAND,
        Command {
            name: "flush",
            arity: -2,
            flags: &["noscript", "write", "no_multi"],
            complexity: "O(n) in the number of libraries",
            summary: "Delete all the libraries",
            syntax: "[ASYNC|SYNC]",
            handler: flush,
            ..FUNCTION
        },
        Command {
            name: "kill",
            flags: &["noscript", "allow_busy"],
            summary: "Kill the currently running functions",
            handler: kill,
            ..FUNCTION
        },
        list::COMMAND,
        load::COMMAND,
        restore::COMMAND,
        stats::COMMAND,
    ],
    ..Command::DEFAULT
};

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Text(text) => Self::Text(text),
            Refusal::Store(error) => Self::Store(error),
        }
    }
}

/// The error when a subcommand has too many arguments, as in Redis.
fn wrong_arguments(context: &Context<'_>) -> Failure {
    let name = String::from_utf8_lossy(&context.arguments[1]);
    Failure::Text(format!(
        "ERR unknown subcommand or wrong number of arguments for '{name}'. Try FUNCTION HELP."
    ))
}

fn delete(context: &mut Context<'_>) -> Result<(), Failure> {
    let (shared, name) = (context.shared, &context.arguments[2]);
    let delete = |removed: bool| if removed { Ok(()) } else { Err("ERR Library not found".to_owned()) };
    shared.libraries.change(&*shared.store, |set| delete(set.remove(name)))?;
    context.reply.ok();
    Ok(())
}

fn flush(context: &mut Context<'_>) -> Result<(), Failure> {
    match context.arguments.len() {
        2 => {}
        3 if context.is_word(2, "async") || context.is_word(2, "sync") => {}
        3 => return Err(Failure::Fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")),
        _ => return Err(wrong_arguments(context)),
    }
    let shared = context.shared;
    shared.libraries.change(&*shared.store, |set| {
        set.clear();
        Ok(())
    })?;
    tracing::info!(client = context.session.client.peer(), "a client removes all libraries of functions");
    context.reply.ok();
    Ok(())
}

/// Any function can be killed: its writes take effect at its end.
fn kill(context: &mut Context<'_>) -> Result<(), Failure> {
    context.shared.running.kill(Kind::Function).map_err(Failure::Fixed)?;
    context.reply.ok();
    Ok(())
}
