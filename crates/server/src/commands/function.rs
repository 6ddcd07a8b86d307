//! `FUNCTION …`: what a Redis without libraries of functions answers. There are no functions here.

use super::{Command, Context, Failure};

/// No function is ever executed.
const NOT_BUSY: Failure = Failure::Fixed("NOTBUSY No scripts in execution right now.");

const FUNCTION: Command =
    Command { arity: 2, flags: &["noscript"], group: "scripting", since: "7.0.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "function",
    arity: -2,
    group: "scripting",
    since: "7.0.0",
    complexity: "Depends on subcommand",
    summary: "Inspect functions, of which there are none",
    subcommands: &[
        Command {
            name: "delete",
            arity: 3,
            flags: &["noscript", "write"],
            summary: "Delete an existing library and all its functions",
            syntax: "<LIBRARY NAME>",
            handler: |_| Err(Failure::Fixed("ERR Library not found")),
            ..FUNCTION
        },
        Command {
            name: "flush",
            arity: -2,
            flags: &["noscript", "write"],
            summary: "Delete all the libraries",
            syntax: "[ASYNC|SYNC]",
            handler: flush,
            ..FUNCTION
        },
        Command {
            name: "kill",
            flags: &["noscript", "allow_busy"],
            summary: "Kill a currently running read-only function",
            handler: |_| Err(NOT_BUSY),
            ..FUNCTION
        },
        Command {
            name: "list",
            arity: -2,
            summary: "Return general information on all the libraries",
            syntax: "[LIBRARYNAME PATTERN] [WITHCODE]",
            handler: list,
            ..FUNCTION
        },
        Command {
            name: "stats",
            flags: &["noscript", "allow_busy"],
            summary: "Return information about the currently running function and the engines, of which there are none",
            handler: stats,
            ..FUNCTION
        },
    ],
    ..Command::DEFAULT
};

fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.array(0);
    Ok(())
}

fn stats(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.map(2);
    context.reply.bulk(b"running_script");
    context.reply.null();
    context.reply.bulk(b"engines");
    context.reply.map(0);
    Ok(())
}

fn flush(context: &mut Context<'_>) -> Result<(), Failure> {
    let is_known = match context.arguments.len() {
        2 => true,
        3 => context.is_word(2, "async") || context.is_word(2, "sync"),
        _ => false,
    };
    if !is_known {
        return Err(Failure::Fixed("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    context.reply.ok();
    Ok(())
}
