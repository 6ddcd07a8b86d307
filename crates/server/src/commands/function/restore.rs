//! `FUNCTION RESTORE payload [FLUSH|APPEND|REPLACE]`

use std::time::Instant;

use alluvium_protocol::dump::{self, DumpError};

use super::{Command, Context, FUNCTION, Failure, wrong_arguments};
use crate::scripting::{self, Library, LibrarySet, TIME_MAX};

pub(super) const COMMAND: Command = Command {
    name: "restore",
    arity: -3,
    flags: &["noscript", "write", "denyoom", "no_multi"],
    complexity: "O(n) in the number of libraries",
    summary: "Restore the libraries of a payload that FUNCTION DUMP returned, APPEND by default",
    syntax: "<PAYLOAD> [FLUSH|APPEND|REPLACE]",
    handler: restore,
    ..FUNCTION
};

/// What happens to libraries that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Flush,
    /// A library of the same name is an error.
    Append,
    /// It is replaced.
    Replace,
}

fn restore(context: &mut Context<'_>) -> Result<(), Failure> {
    let policy = match context.arguments.len() {
        3 => Policy::Append,
        4 if context.is_word(3, "append") => Policy::Append,
        4 if context.is_word(3, "replace") => Policy::Replace,
        4 if context.is_word(3, "flush") => Policy::Flush,
        4 => {
            return Err(Failure::Fixed(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => return Err(wrong_arguments(context)),
    };
    let shared = context.shared;
    let sources = dump::decode_libraries(&context.arguments[2], shared.options.limits);
    let sources = sources.map_err(|error| match error {
        DumpError::Footer => Failure::Fixed("ERR DUMP payload version or checksum are wrong"),
        DumpError::Content => Failure::Fixed("ERR failed loading the given functions payload"),
        DumpError::Kind => Failure::Fixed("ERR given type is not a function"),
    })?;
    // They are one group: two of the same name are an error under any policy.
    let (mut names, mut libraries) = (LibrarySet::default(), Vec::with_capacity(sources.len().min(1024)));
    let deadline = Instant::now() + TIME_MAX;
    for source in &sources {
        let library = scripting::load(shared, source, deadline).map_err(Failure::Text)?;
        names.insert(library.clone(), false).map_err(Failure::Text)?;
        libraries.push(library);
    }
    shared.libraries.change(&*shared.store, |set| restore_into(set, libraries, policy))?;
    context.reply.ok();
    Ok(())
}

fn restore_into(set: &mut LibrarySet, libraries: Vec<Library>, policy: Policy) -> Result<(), String> {
    match policy {
        Policy::Flush => set.clear(),
        Policy::Append => {
            if let Some(library) = libraries.iter().find(|library| set.get(library.name.as_bytes()).is_some())
            {
                return Err(format!("ERR Library {} already exists", library.name));
            }
        }
        // All of them, before the functions of any are compared.
        Policy::Replace => libraries.iter().for_each(|library| {
            set.remove(library.name.as_bytes());
        }),
    }
    libraries.into_iter().try_for_each(|library| set.insert(library, false))
}
