//! `SAVE`

use super::{Command, Context, Failure};
use crate::answer::Wanted;
use crate::chores::Chore;
use crate::session::Replies;

pub(super) const COMMAND: Command = Command {
    name: "save",
    arity: 1,
    flags: &["admin", "noscript", "no_multi"],
    group: "server",
    complexity: "O(n) in the size of the database, beside other clients",
    summary: "Make a backup in the directory of saves, and check it",
    handler: save,
    ..Command::DEFAULT
};

/// The client waits, the others do not.
fn save(context: &mut Context<'_>) -> Result<(), Failure> {
    begin(context)?;
    if context.session.replies == Replies::Sent {
        context.session.wants = Some(Wanted::Chore(Chore::Save));
    } else {
        context.shared.chores.add(Chore::Save, None);
    }
    Ok(())
}

/// Notes that a save is in progress.
pub(super) fn begin(context: &Context<'_>) -> Result<(), Failure> {
    if !context.shared.store.is_stored() {
        return Err(Failure::Text(format!("ERR {}", crate::NothingStored)));
    }
    if context.shared.options.save_directory.is_none() {
        return Err(Failure::Fixed("ERR the server was started without a directory for saves"));
    }
    if context.shared.saves.begin() {
        Ok(())
    } else {
        Err(Failure::Fixed("ERR Background save already in progress"))
    }
}
