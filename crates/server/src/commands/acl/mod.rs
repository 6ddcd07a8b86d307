//! `ACL …`: users, and what they may do.

mod cat;
mod check;
mod dryrun;
mod genpass;
mod getuser;
mod log;
mod request;
mod users;

use super::{Command, Context, Failure};

#[cfg(feature = "scripting")]
pub(crate) use check::is_allowed;
pub(super) use check::{check, denied_password, kill_clients};

const ACL: Command = Command {
    arity: 2,
    flags: &["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "6.0.0",
    ..Command::DEFAULT
};

/// Subcommands that any user may execute that may execute `ACL`.
const OPEN: Command = Command { flags: &["noscript", "loading", "stale"], ..ACL };

pub(super) const COMMAND: Command = Command {
    name: "acl",
    arity: -2,
    group: "server",
    since: "6.0.0",
    complexity: "Depends on subcommand",
    summary: "Create, change and show users",
    subcommands: &[
        cat::COMMAND,
        users::DELUSER,
        dryrun::COMMAND,
        genpass::COMMAND,
        getuser::COMMAND,
        users::LIST,
        users::LOAD,
        log::COMMAND,
        users::SAVE,
        users::SETUSER,
        users::USERS,
        users::WHOAMI,
    ],
    ..Command::DEFAULT
};
