//! `ALLUVIUM.VERSION …`: which of several built versions is served.

use alluvium_protocol::integer;

use super::{ALLUVIUM, Command, Context, Failure};
use crate::answer::Wanted;
use crate::chores::{Chore, VersionChange};

pub(in crate::commands) const COMMAND: Command = Command {
    name: "alluvium.version",
    arity: -2,
    complexity: "Depends on subcommand",
    summary: "Swap the built version that is served, or list what is there",
    subcommands: &[
        Command {
            name: "list",
            arity: 2,
            complexity: "O(n) in the number of versions, beside other clients",
            summary: "List the versions, with the one that is served",
            handler: |context| change(context, VersionChange::List),
            ..ALLUVIUM
        },
        Command {
            name: "rollback",
            arity: 2,
            summary: "Serve the version again that was served before",
            handler: |context| change(context, VersionChange::RollBack),
            ..ALLUVIUM
        },
        Command {
            name: "swap",
            arity: -2,
            complexity: "O(n) in the number of files, beside other clients",
            summary: "Serve the version of this number, by default the youngest, if it fits",
            syntax: "[<number>]",
            handler: swap,
            ..ALLUVIUM
        },
    ],
    ..ALLUVIUM
};

fn swap(context: &mut Context<'_>) -> Result<(), Failure> {
    let number = match context.arguments.len() {
        2 => None,
        3 => {
            let number = integer::parse(&context.arguments[2]).and_then(|number| u64::try_from(number).ok());
            Some(number.ok_or(Failure::NOT_AN_INTEGER)?)
        }
        _ => return Err(Failure::SYNTAX),
    };
    change(context, VersionChange::Swap(number))
}

fn change(context: &mut Context<'_>, change: VersionChange) -> Result<(), Failure> {
    if context.shared.store.versions().is_none() {
        return Err(Failure::Fixed("ERR this server was not started with a directory of versions"));
    }
    context.session.wants = Some(Wanted::Chore(Chore::Version(change)));
    Ok(())
}
