//! `PSETEX key milliseconds value`

use super::expiry::{Base, Unit, future};
use super::{Command, Context, Failure};
use crate::changes::Event;

pub(super) const COMMAND: Command = Command {
    name: "psetex",
    arity: 4,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.6.0",
    summary: "Set the value of a key and its time to live, in milliseconds",
    syntax: "key milliseconds value",
    handler: psetex,
    ..Command::DEFAULT
};

fn psetex(context: &mut Context<'_>) -> Result<(), Failure> {
    let at_ms = future(context, 2, (Unit::Milliseconds, Base::Now), "psetex")?;
    context.store().insert(&context.arguments[1], &context.arguments[3], Some(at_ms))?;
    context.changed(1, Event::SET);
    context.changed(1, Event::EXPIRE);
    context.reply.ok();
    Ok(())
}
