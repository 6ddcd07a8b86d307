//! `SELECT index`

use alluvium_protocol::integer;

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "select",
    arity: 2,
    flags: &["loading", "stale", "fast"],
    group: "connection",
    summary: "Change the selected database, of which there is one",
    syntax: "index",
    handler: select,
    ..Command::DEFAULT
};

fn select(context: &mut Context<'_>) -> Result<(), Failure> {
    match integer::parse(&context.arguments[1]).and_then(|index| i32::try_from(index).ok()) {
        Some(0) => {
            context.reply.ok();
            Ok(())
        }
        Some(_) => Err(Failure::Fixed("ERR DB index is out of range")),
        None => Err(Failure::NOT_AN_INTEGER),
    }
}
