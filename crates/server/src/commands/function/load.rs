//! `FUNCTION LOAD [REPLACE] code`

use std::time::Instant;

use super::{Command, Context, FUNCTION, Failure};
use crate::scripting::{self, LOAD_TIME_MAX};

pub(super) const COMMAND: Command = Command {
    name: "load",
    arity: -3,
    flags: &["noscript", "write", "denyoom", "no_multi"],
    complexity: "O(n) in the length of the code",
    summary: "Create a library with the given name and code",
    syntax: "[REPLACE] <FUNCTION CODE>",
    handler: load,
    ..FUNCTION
};

fn load(context: &mut Context<'_>) -> Result<(), Failure> {
    let (shared, last) = (context.shared, context.arguments.len() - 1);
    for position in 2..last {
        if !context.is_word(position, "replace") {
            let option = String::from_utf8_lossy(&context.arguments[position]);
            return Err(Failure::Text(format!("ERR Unknown option given: {option}")));
        }
    }
    let replaces = last > 2;
    let source = &context.arguments[last];
    // Before the source is executed, which takes longer.
    let name = scripting::library_name(source).map_err(Failure::Text)?;
    if !replaces && shared.libraries.current().get(name.as_bytes()).is_some() {
        return Err(Failure::Text(format!("ERR Library '{name}' already exists")));
    }
    let library = scripting::load(shared, source, Instant::now() + LOAD_TIME_MAX).map_err(Failure::Text)?;
    shared.libraries.change(&*shared.store, |set| set.insert(library, replaces))?;
    context.reply.bulk(name.as_bytes());
    Ok(())
}
