//! `DEBUG SLEEP seconds`: not allowed unless the server was started so, as in Redis.

use std::time::Duration;

use super::{Command, Context, Failure};
use crate::answer::Wanted;

pub(super) const COMMAND: Command = Command {
    name: "debug",
    arity: -2,
    flags: &["admin", "noscript", "loading", "stale", "no_multi"],
    group: "server",
    summary: "Let this client wait for some time; not allowed unless the server was started so",
    syntax: "SLEEP seconds",
    handler: debug,
    ..Command::DEFAULT
};

const SLEEP_MAX: Duration = Duration::from_secs(3600);

fn debug(context: &mut Context<'_>) -> Result<(), Failure> {
    if !context.shared.options.debug_commands {
        return Err(Failure::Fixed(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it \
             from a local connection, otherwise you need to set this option in the configuration file, and then \
             restart the server.",
        ));
    }
    if context.arguments.len() != 3 || !context.is_word(1, "sleep") {
        let name = String::from_utf8_lossy(&context.arguments[1]);
        return Err(Failure::Text(format!(
            "ERR unknown subcommand or wrong number of arguments for '{name}'. Try DEBUG HELP."
        )));
    }
    let seconds = std::str::from_utf8(&context.arguments[2]).ok().and_then(|text| text.parse::<f64>().ok());
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    let duration = duration.ok_or(Failure::Fixed("ERR value is not a valid float"))?;
    context.session.wants = Some(Wanted::Sleep(duration.min(SLEEP_MAX)));
    Ok(())
}
