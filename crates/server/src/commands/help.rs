//! `HELP` of the commands with subcommands, from the table.

use super::{Command, Context, Failure, find};

/// `HELP` of every command with subcommands.
pub(super) static COMMAND: Command = Command {
    name: "help",
    arity: 2,
    since: "5.0.0",
    summary: "Print helpful text about the subcommands",
    flags: &["loading", "stale"],
    handler: answer_help,
    ..Command::DEFAULT
};

fn answer_help(context: &mut Context<'_>) -> Result<(), Failure> {
    if let Some(command) = find(&context.arguments[0]) {
        help(command, context);
    }
    Ok(())
}

fn help(command: &Command, context: &mut Context<'_>) {
    context.reply.array(2 * command.subcommands.len() + 3);
    context.reply.simple(format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.name.to_ascii_uppercase()
    ));
    for subcommand in command.subcommands {
        let line = format!("{} {}", subcommand.name.to_ascii_uppercase(), subcommand.syntax);
        context.reply.simple(line.trim_end());
        context.reply.simple(format!("    {}.", subcommand.summary));
    }
    context.reply.simple("HELP");
    context.reply.simple("    Prints this help.");
}
