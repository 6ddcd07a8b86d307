//! `TTL key`

use super::expiry::{Base, Unit, get_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "ttl",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    summary: "Get the time until a key expires, in seconds",
    syntax: "key",
    handler: ttl,
    ..Command::DEFAULT
};

fn ttl(context: &mut Context<'_>) -> Result<(), Failure> {
    get_expiry(context, Unit::Seconds, Base::Now)
}
