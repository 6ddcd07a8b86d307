//! `CLIENT REPLY ON|OFF|SKIP`

use super::CONNECTION;
use crate::commands::{Command, Context, Failure};
use crate::session::Replies;

pub(super) const COMMAND: Command = Command {
    name: "reply",
    arity: 3,
    since: "3.2.0",
    summary: "Control the replies sent to the current connection",
    syntax: "(ON|OFF|SKIP)",
    handler: reply,
    ..CONNECTION
};

fn reply(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.is_word(2, "on") {
        context.session.replies = Replies::Sent;
        context.reply.ok();
    } else if context.is_word(2, "off") {
        context.session.replies = Replies::Off;
    } else if context.is_word(2, "skip") {
        if context.session.replies != Replies::Off {
            context.session.replies = Replies::SkipNext;
        }
    } else {
        return Err(Failure::SYNTAX);
    }
    Ok(())
}
