//! `ALLUVIUM.BACKUP path`

use std::path::{Component, Path};

use super::{ALLUVIUM, Command, Context, Failure};
use crate::answer::Wanted;
use crate::chores::Chore;

pub(in crate::commands) const COMMAND: Command = Command {
    name: "alluvium.backup",
    arity: 2,
    complexity: "O(n) in the size of the database, beside other clients",
    summary: "Make a backup in a directory below that of backups, and check it",
    syntax: "path",
    handler: back_up,
    ..ALLUVIUM
};

/// Clients choose a place below the directory that was given at the start, and none elsewhere.
fn back_up(context: &mut Context<'_>) -> Result<(), Failure> {
    let Some(root) = &context.shared.options.backup_directory else {
        return Err(Failure::Fixed("ERR the server was started without a directory for backups"));
    };
    let path = std::str::from_utf8(&context.arguments[1]).ok().filter(|path| !path.contains('\0'));
    let path = path.map(Path::new).filter(|path| {
        let mut parts = path.components().peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
    });
    let path = path.ok_or(Failure::Fixed(
        "ERR the path must be relative to the directory for backups, and stay below it",
    ))?;
    context.session.wants = Some(Wanted::Chore(Chore::BackUp(root.join(path))));
    Ok(())
}
