//! `CONFIG GET`: the settings that clients look at, under Redis's names.

use super::{Command, Context, Failure};
use crate::glob;
use crate::shared::Shared;
use crate::store::DatabaseNumber;

pub(super) const COMMAND: Command = Command {
    name: "config",
    arity: -2,
    flags: &[],
    group: "server",
    since: "2.0.0",
    complexity: "Depends on subcommand",
    summary: "Read configuration parameters",
    subcommands: &[Command {
        name: "get",
        arity: -3,
        flags: &["admin", "noscript", "loading", "stale"],
        group: "server",
        since: "2.0.0",
        complexity: "O(n) in the number of parameters and patterns",
        summary: "Return parameters matching the glob-like <pattern> and their values",
        syntax: "<pattern> [<pattern> ...]",
        handler: get,
        ..Command::DEFAULT
    }],
    ..Command::DEFAULT
};

fn get(context: &mut Context<'_>) -> Result<(), Failure> {
    let patterns = context.arguments.from(2);
    let mut parameters = parameters(context.shared);
    parameters
        .retain(|(name, _)| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes(), true)));
    context.reply.map(parameters.len());
    for (name, value) in &parameters {
        context.reply.bulk(name.as_bytes());
        context.reply.bulk(value.as_bytes());
    }
    Ok(())
}

/// `save` and `appendonly` are about Redis's own ways to persist, which do not exist here.
fn parameters(shared: &Shared) -> Vec<(&'static str, String)> {
    let options = &shared.options;
    vec![
        ("appendonly", "no".to_owned()),
        ("bind", shared.address.ip().to_string()),
        ("databases", DatabaseNumber::COUNT.to_string()),
        ("io-threads", options.workers.to_string()),
        ("maxclients", shared.clients_max.to_string()),
        ("maxmemory", shared.store.memory_bytes_max().to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", shared.address.port().to_string()),
        ("proto-max-bulk-len", options.limits.bulk_bytes_max.to_string()),
        ("save", String::new()),
        ("timeout", options.idle_timeout.map_or(0, |timeout| timeout.as_secs()).to_string()),
    ]
}
