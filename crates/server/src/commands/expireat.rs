//! `EXPIREAT key unix-time-seconds [NX|XX|GT|LT]`

use super::expiry::{Base, Unit, set_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "expireat",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    since: "1.2.0",
    summary: "Let a key expire at a time since 1970, in seconds",
    syntax: "key unix-time-seconds [NX|XX|GT|LT]",
    handler: expireat,
    ..Command::DEFAULT
};

fn expireat(context: &mut Context<'_>) -> Result<(), Failure> {
    set_expiry(context, Unit::Seconds, Base::Epoch)
}
