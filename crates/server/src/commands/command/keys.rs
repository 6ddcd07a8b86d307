//! `COMMAND GETKEYS command [arg ...]` and `COMMAND GETKEYSANDFLAGS command [arg ...]`

use super::find_full;
use crate::commands::key_use::{counted_at, key_flags, key_positions};
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
        let flags = key_flags(command, number, context.arguments.from(2));
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
    if command.keys.0 == 0 && counted_at(command).is_none() {
        return Err(Failure::Fixed("ERR The command has no key arguments"));
    }
    if !command.accepts(arguments.len()) {
        return Err(Failure::Fixed("ERR Invalid number of arguments specified for command"));
    }
    let positions = key_positions(command, arguments);
    let is_optional = command.flags.contains(&"no_mandatory_keys");
    if positions.is_empty() && !is_optional {
        return Err(Failure::Fixed("ERR Invalid arguments specified for command"));
    }
    Ok((command, positions))
}
