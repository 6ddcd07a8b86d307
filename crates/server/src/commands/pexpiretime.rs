//! `PEXPIRETIME key`

use super::expiry::{Base, Unit, get_expiry};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "pexpiretime",
    arity: 2,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    since: "7.0.0",
    summary: "Get when a key expires, since 1970, in milliseconds",
    syntax: "key",
    handler: pexpiretime,
    ..Command::DEFAULT
};

fn pexpiretime(context: &mut Context<'_>) -> Result<(), Failure> {
    get_expiry(context, Unit::Milliseconds, Base::Epoch)
}
