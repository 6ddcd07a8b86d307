//! `SELECT index`

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::store::DatabaseNumber;

pub(super) const COMMAND: Command = Command {
    name: "select",
    arity: 2,
    flags: &["loading", "stale", "fast"],
    group: "connection",
    summary: "Change the selected database",
    syntax: "index",
    handler: select,
    ..Command::DEFAULT
};

/// The first time that a database is selected, it is created: a record in the manifest.
fn select(context: &mut Context<'_>) -> Result<(), Failure> {
    let number = integer::parse(&context.arguments[1]).ok_or(Failure::NOT_AN_INTEGER)?;
    let number = DatabaseNumber::new(number).ok_or(Failure::Fixed("ERR DB index is out of range"))?;
    context.shared.store.open(number)?;
    context.session.database = number;
    context.reply.ok();
    Ok(())
}
