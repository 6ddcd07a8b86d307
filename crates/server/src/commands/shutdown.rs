//! `SHUTDOWN [NOSAVE|SAVE] [NOW] [FORCE] [ABORT]`

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "shutdown",
    arity: -1,
    flags: &["admin", "noscript", "loading", "stale", "no_multi", "allow_busy"],
    group: "server",
    summary: "Stop the server; acknowledged writes stay as durable as the store made them",
    syntax: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
    handler: shutdown,
    ..Command::DEFAULT
};

/// No reply: the end of the connection shows that it worked.
fn shutdown(context: &mut Context<'_>) -> Result<(), Failure> {
    let (mut save, mut no_save, mut abort) = (false, false, false);
    let options = 1..context.arguments.len();
    for at in options.clone() {
        if context.is_word(at, "save") {
            save = true;
        } else if context.is_word(at, "nosave") {
            no_save = true;
        } else if context.is_word(at, "abort") {
            abort = true;
        } else if !context.is_word(at, "now") && !context.is_word(at, "force") {
            return Err(Failure::SYNTAX);
        }
    }
    if (save && no_save) || (abort && options.len() > 1) {
        return Err(Failure::SYNTAX);
    }
    if abort {
        return Err(Failure::Fixed("ERR No shutdown in progress."));
    }
    tracing::info!(client = context.session.client.peer(), "a client stops the server");
    context.session.closing = true;
    context.shared.shutdown.shutdown();
    Ok(())
}
