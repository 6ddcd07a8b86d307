//! `EVAL_RO script numkeys [key ...] [arg ...]`

use super::eval::eval_source;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "eval_ro",
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
    summary: "Execute a Lua script that does not write",
    syntax: "script numkeys [key ...] [arg ...]",
    handler: eval_ro,
    ..Command::DEFAULT
};

fn eval_ro(context: &mut Context<'_>) -> Result<(), Failure> {
    eval_source(context, true)
}
