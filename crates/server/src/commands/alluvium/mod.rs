//! `ALLUVIUM.…`: what Redis does not have.

pub(super) mod backup;
pub(super) mod plan;
pub(super) mod stats;
pub(super) mod verify;
pub(super) mod version;

use super::{Command, Context, Failure};

const ALLUVIUM: Command = Command {
    flags: &["admin", "noscript", "no_multi"],
    group: "server",
    since: env!("CARGO_PKG_VERSION"),
    ..Command::DEFAULT
};

/// The keyspace that the request names, or that of database 0.
fn keyspace(context: &Context<'_>) -> Result<String, Failure> {
    match context.arguments.len() {
        1 => Ok("default".to_owned()),
        2 => Ok(String::from_utf8_lossy(&context.arguments[1]).into_owned()),
        _ => Err(Failure::SYNTAX),
    }
}
