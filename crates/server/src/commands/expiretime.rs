//! `EXPIRETIME key`

use super::expiry::{Base, Unit, get_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "expiretime",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    since: "7.0.0",
    summary: "Get when a key expires, since 1970, in seconds",
    syntax: "key",
    handler: expiretime,
    ..Command::DEFAULT
};

fn expiretime(context: &mut Context<'_>) -> Result<(), Failure> {
    get_expiry(context, Unit::Seconds, Base::Epoch)
}
