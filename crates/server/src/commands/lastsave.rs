//! `LASTSAVE`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "lastsave",
    arity: 1,
    flags: &["admin", "loading", "stale", "fast"],
    group: "server",
    summary: "Get the time of the last save that succeeded, or of the start of the server",
    handler: last_save,
    ..Command::DEFAULT
};

fn last_save(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.integer(i64::try_from(context.shared.saves.state().saved_at_s).unwrap_or(i64::MAX));
    Ok(())
}
