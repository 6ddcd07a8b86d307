//! `FCALL_RO function numkeys [key ...] [arg ...]`

use super::fcall::call;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "fcall_ro",
    arity: -3,
    flags: &["readonly", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
    group: "scripting",
    since: "7.0.0",
    complexity: "Depends on the function that is executed",
    summary: "Call a function that does not write",
    syntax: "function numkeys [key ...] [arg ...]",
    handler: fcall_ro,
    ..Command::DEFAULT
};

fn fcall_ro(context: &mut Context<'_>) -> Result<(), Failure> {
    call(context, true)
}
