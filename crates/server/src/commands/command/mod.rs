//! `COMMAND …`: the commands that there are, from the one table.

mod arguments;
mod keys;
mod list;

use super::categories::categories;
use super::{COMMANDS, Command, Context, Failure, find, help};

const SERVER: Command = Command { flags: &["loading", "stale"], group: "server", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "command",
    arity: -1,
    since: "2.8.13",
    complexity: "O(n) in the number of commands",
    summary: "Describe commands",
    handler: all,
    subcommands: &[
        Command {
            name: "count",
            arity: 2,
            since: "2.8.13",
            summary: "Return the total number of commands in this server",
            handler: count,
            ..SERVER
        },
        Command {
            name: "docs",
            arity: -2,
            since: "7.0.0",
            summary: "Return documentation details about multiple commands",
            syntax: "[<command-name> ...]",
            handler: docs,
            ..SERVER
        },
        Command {
            name: "getkeys",
            arity: -3,
            since: "2.8.13",
            complexity: "O(n) in the number of arguments",
            summary: "Return the keys from a full Redis command",
            syntax: "<full-command>",
            handler: keys::get_keys,
            ..SERVER
        },
        Command {
            name: "getkeysandflags",
            arity: -3,
            since: "7.0.0",
            complexity: "O(n) in the number of arguments",
            summary: "Return the keys and the access flags from a full Redis command",
            syntax: "<full-command>",
            handler: keys::get_keys_and_flags,
            ..SERVER
        },
        Command {
            name: "info",
            arity: -2,
            since: "2.8.13",
            summary: "Return details about multiple commands",
            syntax: "[<command-name> ...]",
            handler: info,
            ..SERVER
        },
        Command {
            name: "list",
            arity: -2,
            since: "7.0.0",
            summary: "Return a list of all commands in this server",
            syntax: "[FILTERBY (MODULE <module-name>|ACLCAT <cat>|PATTERN <pattern>)]",
            handler: list::list,
            ..SERVER
        },
    ],
    ..SERVER
};

fn all(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.array(COMMANDS.len());
    COMMANDS.iter().for_each(|command| describe(command, None, context));
    Ok(())
}

fn count(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.count(COMMANDS.len());
    Ok(())
}

fn info(context: &mut Context<'_>) -> Result<(), Failure> {
    let names = context.arguments.from(2);
    if names.is_empty() {
        return all(context);
    }
    context.reply.array(names.len());
    for name in names.iter() {
        match found(name) {
            Some((container, command)) => describe(command, container, context),
            None => context.reply.null(),
        }
    }
    Ok(())
}

/// Omits unknown names, as Redis does.
fn docs(context: &mut Context<'_>) -> Result<(), Failure> {
    let names = context.arguments.from(2);
    if names.is_empty() {
        context.reply.map(COMMANDS.len());
        COMMANDS.iter().for_each(|command| document(command, None, context));
    } else {
        context.reply.map(names.iter().filter(|name| found(name).is_some()).count());
        for (container, command) in names.iter().filter_map(found) {
            document(command, container, context);
        }
    }
    Ok(())
}

/// The command called `name`, or the subcommand called `container|name`, with its container.
fn found(name: &[u8]) -> Option<(Option<&'static Command>, &'static Command)> {
    let Some(bar) = name.iter().position(|byte| *byte == b'|') else { return Some((None, find(name)?)) };
    let (container, name) = (find(&name[..bar])?, &name[bar + 1..]);
    let subcommands = container.subcommands.iter();
    let is_help = name.eq_ignore_ascii_case(b"help") && !container.subcommands.is_empty();
    let help = is_help.then_some(&help::COMMAND);
    let command =
        subcommands.chain(help).find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))?;
    Some((Some(container), command))
}

fn find_full(name: &[u8]) -> Option<&'static Command> {
    found(name).map(|(_, command)| command)
}

fn full_name(command: &Command, container: Option<&Command>) -> String {
    match container {
        Some(container) => format!("{}|{}", container.name, command.name),
        None => command.name.to_owned(),
    }
}

/// The ten members of an element of `COMMAND`. Tips and key specifications are left empty: they serve clusters.
fn describe(command: &Command, container: Option<&Command>, context: &mut Context<'_>) {
    let reply = &mut context.reply;
    reply.array(10);
    reply.bulk(full_name(command, container).as_bytes());
    reply.integer(command.arity.into());
    reply.set(command.flags.len());
    command.flags.iter().for_each(|flag| reply.simple(flag));
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|position| reply.integer(position.into()));
    let categories = categories(container, command);
    reply.set(categories.len());
    categories.iter().for_each(|category| reply.simple(format!("@{}", category.name())));
    reply.set(0);
    reply.set(0);
    reply.array(command.subcommands.len());
    command.subcommands.iter().for_each(|subcommand| describe(subcommand, Some(command), context));
}

fn document(command: &Command, container: Option<&Command>, context: &mut Context<'_>) {
    let reply = &mut context.reply;
    reply.bulk(full_name(command, container).as_bytes());
    let has_arguments = command.subcommands.is_empty() && arguments::len(command.syntax) > 0;
    reply.map(4 + usize::from(has_arguments || !command.subcommands.is_empty()));
    for (title, text) in [
        ("summary", command.summary),
        ("since", command.since),
        ("group", command.group),
        ("complexity", command.complexity),
    ] {
        reply.bulk(title.as_bytes());
        reply.bulk(text.as_bytes());
    }
    if has_arguments {
        reply.bulk(b"arguments");
        arguments::write(command.syntax, reply);
    }
    if !command.subcommands.is_empty() {
        reply.bulk(b"subcommands");
        reply.map(command.subcommands.len());
        command.subcommands.iter().for_each(|subcommand| document(subcommand, Some(command), context));
    }
}
