//! `CONFIG …`: settings, under Redis' names.

mod parameters;
mod set;

use std::sync::atomic::Ordering;

use super::{Command, Context, Failure};
use crate::glob;
use parameters::PARAMETERS;

const CONFIG: Command = Command {
    arity: 2,
    flags: &["admin", "noscript", "loading", "stale"],
    group: "server",
    since: "2.0.0",
    ..Command::DEFAULT
};

pub(super) const COMMAND: Command = Command {
    name: "config",
    arity: -2,
    group: "server",
    since: "2.0.0",
    complexity: "Depends on subcommand",
    summary: "Read and change configuration parameters",
    subcommands: &[
        Command {
            name: "get",
            arity: -3,
            complexity: "O(n) in the number of parameters and patterns",
            summary: "Return parameters matching the glob-like <pattern> and their values",
            syntax: "<pattern> [<pattern> ...]",
            handler: get,
            ..CONFIG
        },
        Command {
            name: "resetstat",
            summary: "Reset statistics reported by the INFO command",
            handler: reset_statistics,
            ..CONFIG
        },
        Command {
            name: "rewrite",
            since: "2.8.0",
            summary: "Refused: what CONFIG SET changes is not in the file of settings",
            handler: rewrite,
            ..CONFIG
        },
        Command {
            name: "set",
            arity: -4,
            complexity: "O(n) in the number of parameters",
            summary: "Set the configuration <directive> to <value>",
            syntax: "<directive> <value> [<directive> <value> ...]",
            handler: set::set,
            ..CONFIG
        },
    ],
    ..Command::DEFAULT
};

fn get(context: &mut Context<'_>) -> Result<(), Failure> {
    let patterns = context.arguments.from(2);
    let found: Vec<_> = PARAMETERS
        .iter()
        .filter(|parameter| {
            patterns.iter().any(|pattern| glob::matches(pattern, parameter.name.as_bytes(), true))
        })
        .collect();
    context.reply.map(found.len());
    for parameter in found {
        context.reply.bulk(parameter.name.as_bytes());
        context.reply.bulk((parameter.get)(context.shared).as_bytes());
    }
    Ok(())
}

/// The file has the options of the server, of which none can be changed while it runs.
fn rewrite(context: &mut Context<'_>) -> Result<(), Failure> {
    Err(match &context.shared.options.settings_file {
        None => Failure::Fixed("ERR The server is running without a config file"),
        Some(file) => Failure::Text(format!(
            "ERR {} has the settings of the start only: what CONFIG SET changes lasts until the server ends",
            file.display()
        )),
    })
}

fn reset_statistics(context: &mut Context<'_>) -> Result<(), Failure> {
    let shared = context.shared;
    for counter in [&shared.connections_accepted, &shared.connections_refused, &shared.commands_processed] {
        counter.store(0, Ordering::Relaxed);
    }
    shared.error_counts.clear();
    shared.reset_totals();
    context.reply.ok();
    Ok(())
}
