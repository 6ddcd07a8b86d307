//! `RENAMENX key newkey`

use super::rename::rename;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "renamenx",
    arity: 3,
    flags: &["write", "fast"],
    keys: (1, 2, 1),
    complexity: "O(n) in the length of the value",
    summary: "Rename a key, only if the new name is that of no key",
    syntax: "key newkey",
    handler: renamenx,
    ..Command::DEFAULT
};

fn renamenx(context: &mut Context<'_>) -> Result<(), Failure> {
    let is_renamed = rename(context, false)?;
    context.reply.integer(is_renamed.into());
    Ok(())
}
