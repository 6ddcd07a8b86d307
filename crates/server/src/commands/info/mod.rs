//! `INFO [section ...]`

mod process;
mod sections;

use std::fmt::Write as _;

use super::{Command, Context, Failure, REDIS_VERSION};
use crate::shared::Shared;

pub(super) const COMMAND: Command = Command {
    name: "info",
    arity: -1,
    flags: &["loading", "stale"],
    group: "server",
    summary: "Get information and statistics about the server",
    syntax: "[section [section ...]]",
    handler: info,
    ..Command::DEFAULT
};

/// A part of the text.
struct Section {
    title: &'static str,
    /// Whether it is among the sections of `INFO` without arguments.
    is_default: bool,
    write: fn(&Shared, &mut String) -> std::fmt::Result,
}

const fn section(title: &'static str, write: fn(&Shared, &mut String) -> std::fmt::Result) -> Section {
    Section { title, is_default: true, write }
}

/// In the order of Redis.
const SECTIONS: &[Section] = &[
    section("Server", sections::server),
    section("Clients", sections::clients),
    section("Memory", sections::memory),
    section("Persistence", sections::persistence),
    section("Stats", sections::statistics),
    section("Replication", sections::replication),
    section("CPU", sections::cpu),
    section("Modules", |_, _| Ok(())),
    Section { title: "Commandstats", is_default: false, write: sections::commands },
    section("Errorstats", sections::errors),
    section("Cluster", sections::cluster),
    section("Keyspace", sections::keyspace),
];

/// Omits unknown sections, as Redis does.
fn info(context: &mut Context<'_>) -> Result<(), Failure> {
    let asked = context.arguments.from(1);
    let asks =
        |words: &[&str]| (1..=asked.len()).any(|at| words.iter().any(|word| context.is_word(at, word)));
    let (all, default) = (asks(&["all", "everything"]), asked.is_empty() || asks(&["default"]));
    let mut text = String::new();
    for section in SECTIONS {
        if all || default && section.is_default || asks(&[section.title]) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {}\r\n", section.title)
                .and_then(|()| (section.write)(context.shared, &mut text));
        }
    }
    context.reply.verbatim_text(&text);
    Ok(())
}
