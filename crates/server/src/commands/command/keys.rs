//! `COMMAND GETKEYS command [arg ...]` and `COMMAND GETKEYSANDFLAGS command [arg ...]`

use std::ops::RangeInclusive;

use alluvium_protocol::{Arguments, integer};

use super::find_full;
use crate::commands::{Command, Context, Failure};

pub(super) fn get_keys(context: &mut Context<'_>) -> Result<(), Failure> {
    let (_, positions) = keys(context)?;
    context.reply.array(positions.len());
    for position in positions {
        context.reply.bulk(&context.arguments[2 + position]);
    }
    Ok(())
}

pub(super) fn get_keys_and_flags(context: &mut Context<'_>) -> Result<(), Failure> {
    let (command, positions) = keys(context)?;
    context.reply.array(positions.len());
    for (number, position) in positions.into_iter().enumerate() {
        context.reply.array(2);
        context.reply.bulk(&context.arguments[2 + position]);
        let flags = flags(command, number);
        context.reply.set(flags.len());
        flags.iter().for_each(|flag| context.reply.simple(flag));
    }
    Ok(())
}

/// The command that the arguments name, and where its keys are.
fn keys(context: &Context<'_>) -> Result<(&'static Command, Vec<usize>), Failure> {
    let arguments = context.arguments.from(2);
    let subcommand = |container: &'static Command| {
        let name = arguments.get(1)?;
        container.subcommands.iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
    };
    let command = find_full(&arguments[0])
        .and_then(|command| if command.subcommands.is_empty() { Some(command) } else { subcommand(command) })
        .ok_or(Failure::Fixed("ERR Invalid command specified"))?;
    if command.keys.0 == 0 && numkeys(command).is_none() {
        return Err(Failure::Fixed("ERR The command has no key arguments"));
    }
    if !command.accepts(arguments.len()) {
        return Err(Failure::Fixed("ERR Invalid number of arguments specified for command"));
    }
    const INVALID: Failure = Failure::Fixed("ERR Invalid arguments specified for command");
    let positions = key_positions(command, arguments);
    let is_optional = command.flags.contains(&"no_mandatory_keys");
    if positions.is_empty() && !is_optional { Err(INVALID) } else { Ok((command, positions)) }
}

/// Where the keys of a request are.
pub(in crate::commands) fn key_positions(command: &Command, arguments: Arguments<'_>) -> Vec<usize> {
    match (numkeys(command), command.keys) {
        (Some(at), _) => counted_keys(arguments, at).into_iter().flatten().collect(),
        (None, (0, ..)) => Vec::new(),
        (None, (first, last, step)) => {
            let last = if last < 0 { arguments.len() as i32 + last } else { last };
            (first..=last).step_by(step.max(1) as usize).map(|position| position as usize).collect()
        }
    }
}

/// Where a command has the number of its keys, which come behind it.
fn numkeys(command: &Command) -> Option<usize> {
    match command.name {
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" => Some(2),
        "sintercard" => Some(1),
        _ => None,
    }
}

fn counted_keys(arguments: Arguments<'_>, at: usize) -> Option<RangeInclusive<usize>> {
    let count = usize::try_from(integer::parse(arguments.get(at)?)?).ok()?;
    let last = at.checked_add(count).filter(|last| *last < arguments.len())?;
    Some(at + 1..=last)
}

/// What the command does with its key of this number.
fn flags(command: &Command, number: usize) -> &'static [&'static str] {
    match (command.name, number) {
        ("set" | "setex" | "psetex" | "mset" | "restore", _) => &["OW", "update"],
        ("setnx" | "msetnx", _) => &["OW", "insert"],
        ("del" | "unlink", _) => &["RM", "delete"],
        ("getdel" | "rename" | "renamenx" | "move", 0) => &["RW", "access", "delete"],
        ("rename", 1) | ("bitop" | "sdiffstore" | "sinterstore" | "sunionstore", 0) => &["OW", "update"],
        ("renamenx" | "copy", 1) => &["OW", "insert"],
        ("copy" | "bitop" | "sdiffstore" | "sinterstore" | "sunionstore", _) => &["RO", "access"],
        ("getset" | "getex" | "incr" | "decr" | "incrby" | "decrby" | "incrbyfloat", _) => {
            &["RW", "access", "update"]
        }
        _ if command.is_write() => &["RW", "update"],
        _ => &["RO", "access"],
    }
}
