//! `PEXPIREAT key unix-time-milliseconds [NX|XX|GT|LT]`

use super::expiry::{Base, Unit, set_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "pexpireat",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    since: "2.6.0",
    summary: "Let a key expire at a time since 1970, in milliseconds",
    syntax: "key unix-time-milliseconds [NX|XX|GT|LT]",
    handler: pexpireat,
    ..Command::DEFAULT
};

fn pexpireat(context: &mut Context<'_>) -> Result<(), Failure> {
    set_expiry(context, Unit::Milliseconds, Base::Epoch)
}
