//! `BGSAVE [SCHEDULE]`

use super::{Command, Context, Failure, save};
use crate::chores::Chore;

pub(super) const COMMAND: Command = Command {
    name: "bgsave",
    arity: -1,
    flags: &["admin", "noscript"],
    group: "server",
    summary: "Make a backup in the directory of saves, and check it, while clients are served",
    syntax: "[SCHEDULE]",
    handler: save_in_background,
    ..Command::DEFAULT
};

fn save_in_background(context: &mut Context<'_>) -> Result<(), Failure> {
    match context.arguments.len() {
        1 => {}
        2 if context.is_word(1, "schedule") => {}
        _ => return Err(Failure::SYNTAX),
    }
    save::begin(context)?;
    context.shared.chores.add(Chore::Save, None);
    context.reply.simple("Background saving started");
    Ok(())
}
