//! `FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]`

use std::sync::Arc;

use super::{Command, Context, FUNCTION, Failure};
use crate::glob;
use crate::reply_room::RoomState;
use crate::scripting::Library;

pub(super) const COMMAND: Command = Command {
    name: "list",
    arity: -2,
    complexity: "O(n) in the number of functions",
    summary: "Return general information on all the libraries",
    syntax: "[LIBRARYNAME PATTERN] [WITHCODE]",
    handler: list,
    ..FUNCTION
};

fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    let (mut pattern, mut with_code, mut position) = (None, false, 2);
    while let Some(argument) = context.arguments.get(position) {
        if !with_code && context.is_word(position, "withcode") {
            with_code = true;
        } else if pattern.is_none() && context.is_word(position, "libraryname") {
            position += 1;
            let given = context.arguments.get(position);
            pattern = Some(given.ok_or(Failure::Fixed("ERR library name argument was not given"))?);
        } else {
            let argument = String::from_utf8_lossy(argument);
            return Err(Failure::Text(format!("ERR Unknown argument {argument}")));
        }
        position += 1;
    }
    let set = context.shared.libraries.current();
    let matches = |library: &&Arc<Library>| {
        pattern.is_none_or(|pattern| glob::matches(pattern, library.name.as_bytes(), true))
    };
    let libraries: Vec<&Arc<Library>> = set.all().filter(matches).collect();
    context.reply.array(libraries.len());
    for library in libraries {
        write(context, library, with_code);
        if context.room_state() != RoomState::Enough {
            // The reply is discarded.
            break;
        }
    }
    Ok(())
}

fn write(context: &mut Context<'_>, library: &Library, with_code: bool) {
    let reply = &mut context.reply;
    reply.map(3 + usize::from(with_code));
    reply.bulk(b"library_name");
    reply.bulk(library.name.as_bytes());
    reply.bulk(b"engine");
    reply.bulk(b"LUA");
    reply.bulk(b"functions");
    reply.array(library.functions.len());
    for (name, description) in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(name.as_bytes());
        reply.bulk(b"description");
        reply.optional_bulk(description.text.as_deref());
        reply.bulk(b"flags");
        let flags = description.flags.names();
        reply.set(flags.len());
        flags.for_each(|flag| reply.simple(flag));
    }
    if with_code {
        reply.bulk(b"library_code");
        reply.bulk(&library.source);
    }
}
