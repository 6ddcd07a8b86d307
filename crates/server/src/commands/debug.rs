//! `DEBUG …`: not allowed, as in a Redis with its default settings.

use super::{Command, Failure};

pub(super) const COMMAND: Command = Command {
    name: "debug",
    arity: -2,
    flags: &["admin", "noscript", "loading", "stale"],
    group: "server",
    summary: "Not allowed: a container for debugging commands of Redis",
    syntax: "subcommand [arg ...]",
    handler: |_| {
        Err(Failure::Fixed(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it \
             from a local connection, otherwise you need to set this option in the configuration file, and then \
             restart the server.",
        ))
    },
    ..Command::DEFAULT
};
