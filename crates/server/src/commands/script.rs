//! `SCRIPT …`: what a Redis without cached scripts answers. There are no scripts here.

use super::{Command, Context, Failure};

const SCRIPT: Command =
    Command { flags: &["noscript"], group: "scripting", since: "2.6.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "script",
    arity: -2,
    group: "scripting",
    since: "2.6.0",
    complexity: "Depends on subcommand",
    summary: "Inspect the cache of scripts, of which there are none",
    subcommands: &[
        Command {
            name: "exists",
            arity: -3,
            summary: "Return information about the existence of the scripts in the script cache",
            syntax: "<sha1> [<sha1> ...]",
            handler: exists,
            ..SCRIPT
        },
        Command {
            name: "flush",
            arity: -2,
            summary: "Flush the Lua scripts cache",
            syntax: "[ASYNC|SYNC]",
            handler: |context| flush(context, "ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
            ..SCRIPT
        },
        Command {
            name: "kill",
            arity: 2,
            flags: &["noscript", "allow_busy"],
            summary: "Kill the currently executing Lua script",
            handler: |_| Err(NOT_BUSY),
            ..SCRIPT
        },
    ],
    ..Command::DEFAULT
};

pub(super) const NOT_BUSY: Failure = Failure::Fixed("NOTBUSY No scripts in execution right now.");

fn exists(context: &mut Context<'_>) -> Result<(), Failure> {
    let scripts = context.arguments.from(2).len();
    context.reply.array(scripts);
    (0..scripts).for_each(|_| context.reply.integer(0));
    Ok(())
}

/// There is nothing to remove; `invalid` is the error for an option that there is not.
pub(super) fn flush(context: &mut Context<'_>, invalid: &'static str) -> Result<(), Failure> {
    let legal = match context.arguments.len() {
        2 => true,
        3 => context.is_word(2, "async") || context.is_word(2, "sync"),
        _ => false,
    };
    if !legal {
        return Err(Failure::Fixed(invalid));
    }
    context.reply.ok();
    Ok(())
}
