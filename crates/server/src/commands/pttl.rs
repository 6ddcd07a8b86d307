//! `PTTL key`

use super::expiry::{Base, Unit, get_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "pttl",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    since: "2.6.0",
    summary: "Get the time until a key expires, in milliseconds",
    syntax: "key",
    handler: pttl,
    ..Command::DEFAULT
};

fn pttl(context: &mut Context<'_>) -> Result<(), Failure> {
    get_expiry(context, Unit::Milliseconds, Base::Now)
}
