//! `CLIENT INFO`

use super::{CONNECTION, show_this};
use crate::commands::{Command, Context, Failure, full_name};

pub(super) const COMMAND: Command = Command {
    name: "info",
    arity: 2,
    since: "6.2.0",
    summary: "Return information about the current client connection",
    handler: info,
    ..CONNECTION
};

fn info(context: &mut Context<'_>) -> Result<(), Failure> {
    show_this(context);
    let line = context.session.client.line(full_name);
    context.reply.verbatim_text(&format!("{line}\n"));
    Ok(())
}
