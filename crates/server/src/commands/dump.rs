//! `DUMP key`

use super::{Command, Context, Failure};
use crate::dump_payload;

pub(super) const COMMAND: Command = Command {
    name: "dump",
    arity: 2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    since: "2.6.0",
    complexity: "O(n) in the length of the value",
    summary: "Return a serialized version of the value of a key, for RESTORE here or by Redis",
    syntax: "key",
    handler: dump,
    ..Command::DEFAULT
};

fn dump(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut payload = None;
    context.store().get(&context.arguments[1], &mut |found| {
        payload = Some(dump_payload::encode(found.value));
    })?;
    context.reply.optional_bulk(payload.as_deref());
    Ok(())
}
