//! `EVALSHA sha1 numkeys [key ...] [arg ...]`

use super::eval::eval_digest;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "evalsha",
    arity: -3,
    flags: &[
        "write",
        "noscript",
        "stale",
        "skip_monitor",
        "may_replicate",
        "no_mandatory_keys",
        "movablekeys",
    ],
    group: "scripting",
    since: "2.6.0",
    complexity: "Depends on the script that is executed",
    summary: "Execute a Lua script of the cache",
    syntax: "sha1 numkeys [key ...] [arg ...]",
    handler: evalsha,
    ..Command::DEFAULT
};

fn evalsha(context: &mut Context<'_>) -> Result<(), Failure> {
    eval_digest(context, false)
}
