//! `FCALL function numkeys [key ...] [arg ...]`

use super::{Command, Context, Failure, eval};
use crate::scripting::Program;

pub(super) const COMMAND: Command = Command {
    name: "fcall",
    arity: -3,
    flags: &["write", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
    group: "scripting",
    since: "7.0.0",
    complexity: "Depends on the function that is executed",
    summary: "Call a function",
    syntax: "function numkeys [key ...] [arg ...]",
    handler: fcall,
    ..Command::DEFAULT
};

fn fcall(context: &mut Context<'_>) -> Result<(), Failure> {
    call(context, false)
}

/// Calls the function of the request.
pub(super) fn call(context: &mut Context<'_>, is_read_only: bool) -> Result<(), Failure> {
    eval::show(context);
    let libraries = context.shared.libraries.current();
    let Some(function) = libraries.function(&context.arguments[1]) else {
        return Err(
            match libraries.failed().and_then(|library| Some((library, library.failure.as_ref()?))) {
                None => Failure::Fixed("ERR Function not found"),
                Some((library, failure)) => Failure::Text(format!(
                    "ERR Function not found. The library '{}' could not be loaded: {failure}",
                    library.name
                )),
            },
        );
    };
    let keys = eval::keys_len(context, Failure::Fixed("ERR Bad number of keys provided"))?;
    eval::execute(context, Program::Function(function), keys, is_read_only)
}
