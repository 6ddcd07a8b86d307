//! `SCRIPT …`: the cache of scripts.

use super::eval::FULL;
use super::{Command, Context, Failure};
use crate::scripting::Kind;

const SUBCOMMAND: Command =
    Command { flags: &["noscript"], group: "scripting", since: "2.6.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "script",
    arity: -2,
    summary: "Manage the cache of Lua scripts",
    syntax: "subcommand",
    subcommands: &[
        Command {
            name: "debug",
            arity: 3,
            since: "3.2.0",
            summary: "Set the debug mode for executed scripts, which is not supported",
            syntax: "YES|SYNC|NO",
            handler: debug,
            ..SUBCOMMAND
        },
        Command {
            name: "exists",
            arity: -3,
            complexity: "O(n) in the number of digests",
            summary: "Return information about the existence of the scripts in the script cache",
            syntax: "<sha1> [<sha1> ...]",
            handler: exists,
            ..SUBCOMMAND
        },
        Command {
            name: "flush",
            arity: -2,
            complexity: "O(n) in the number of scripts",
            summary: "Flush the Lua scripts cache",
            syntax: "[ASYNC|SYNC]",
            handler: flush,
            ..SUBCOMMAND
        },
        Command {
            name: "kill",
            arity: 2,
            flags: &["noscript", "allow_busy"],
            summary: "Kill the currently executing Lua scripts",
            handler: kill,
            ..SUBCOMMAND
        },
        Command {
            name: "load",
            arity: 3,
            flags: &["noscript", "stale"],
            complexity: "O(n) in the length of the script",
            summary: "Load a script into the scripts cache without executing it",
            syntax: "<script>",
            handler: load,
            ..SUBCOMMAND
        },
    ],
    ..SUBCOMMAND
};

fn load(context: &mut Context<'_>) -> Result<(), Failure> {
    let source = &context.arguments[2];
    if let Some(text) = crate::scripting::compile_error(context.shared, source) {
        return Err(Failure::Text(text));
    }
    let digest = context.shared.scripts.insert(source).ok_or(Failure::Fixed(FULL))?;
    context.reply.bulk(&digest);
    Ok(())
}

fn exists(context: &mut Context<'_>) -> Result<(), Failure> {
    let digests = context.arguments.from(2);
    context.reply.array(digests.len());
    for digest in digests.iter() {
        context.reply.integer(i64::from(context.shared.scripts.get(digest).is_some()));
    }
    Ok(())
}

fn flush(context: &mut Context<'_>) -> Result<(), Failure> {
    let is_known = match context.arguments.len() {
        2 => true,
        3 => context.is_word(2, "async") || context.is_word(2, "sync"),
        _ => false,
    };
    if !is_known {
        return Err(Failure::Fixed("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    context.shared.scripts.flush();
    context.reply.ok();
    Ok(())
}

/// Any script can be killed: its writes take effect at its end.
fn kill(context: &mut Context<'_>) -> Result<(), Failure> {
    context.shared.running.kill(Kind::Script).map_err(Failure::Fixed)?;
    context.reply.ok();
    Ok(())
}

fn debug(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.is_word(2, "no") {
        context.reply.ok();
        return Ok(());
    }
    Err(Failure::Fixed("ERR scripts cannot be debugged on this server"))
}
