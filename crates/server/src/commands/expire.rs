//! `EXPIRE key seconds [NX|XX|GT|LT]`

use super::expiry::{Base, Unit, set_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "expire",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    summary: "Let a key expire after a time, in seconds",
    syntax: "key seconds [NX|XX|GT|LT]",
    handler: expire,
    ..Command::DEFAULT
};

fn expire(context: &mut Context<'_>) -> Result<(), Failure> {
    set_expiry(context, Unit::Seconds, Base::Now)
}
