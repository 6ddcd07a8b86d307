//! `PEXPIRE key milliseconds [NX|XX|GT|LT]`

use super::expiry::{Base, Unit, set_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "pexpire",
    arity: -3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    since: "2.6.0",
    summary: "Let a key expire after a time, in milliseconds",
    syntax: "key milliseconds [NX|XX|GT|LT]",
    handler: pexpire,
    ..Command::DEFAULT
};

fn pexpire(context: &mut Context<'_>) -> Result<(), Failure> {
    set_expiry(context, Unit::Milliseconds, Base::Now)
}
