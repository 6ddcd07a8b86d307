//! `KEYS pattern`

use super::{Command, Context, Failure};
use crate::glob;

pub(super) const COMMAND: Command = Command {
    name: "keys",
    arity: 2,
    flags: &["readonly"],
    complexity: "O(n) in the number of keys",
    summary: "Find all keys matching the given pattern",
    syntax: "pattern",
    handler: keys,
    ..Command::DEFAULT
};

/// Keys visited between two checks of the size of the reply.
const PAGE: usize = 4096;

/// All clients of the worker wait meanwhile: `SCAN` is the command that does not do this.
fn keys(context: &mut Context<'_>) -> Result<(), Failure> {
    let pattern = &context.arguments[1];
    let (mut found, mut members, mut cursor) = (Vec::new(), 0, 0);
    loop {
        cursor = context.store().scan(cursor, PAGE, &mut |key| {
            if glob::matches(pattern, key, false) {
                members += 1;
                found.extend_from_slice(format!("${}\r\n", key.len()).as_bytes());
                found.extend_from_slice(key);
                found.extend_from_slice(b"\r\n");
            }
        })?;
        // They are copied at the end.
        if !context.reply.admits(2 * found.len()) || found.len() > context.shared.options.output_bytes_max {
            return Err(Failure::ReplyTooLarge);
        }
        if cursor == 0 {
            break;
        }
    }
    context.reply.array(members);
    context.reply.raw(&found);
    Ok(())
}
