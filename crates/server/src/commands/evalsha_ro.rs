//! `EVALSHA_RO sha1 numkeys [key ...] [arg ...]`

use super::eval::eval_digest;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "evalsha_ro",
    arity: -3,
    flags: &[
        "readonly",
        "noscript",
        "stale",
        "skip_monitor",
        "may_replicate",
        "no_mandatory_keys",
        "movablekeys",
    ],
    group: "scripting",
    since: "7.0.0",
    complexity: "Depends on the script that is executed",
    summary: "Execute a Lua script of the cache that does not write",
    syntax: "sha1 numkeys [key ...] [arg ...]",
    handler: evalsha_ro,
    ..Command::DEFAULT
};

fn evalsha_ro(context: &mut Context<'_>) -> Result<(), Failure> {
    eval_digest(context, true)
}
