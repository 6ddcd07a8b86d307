//! `GETBIT key offset`

use super::bits;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "getbit",
    arity: 3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "2.2.0",
    summary: "Get the bit at an offset of the value of a key",
    syntax: "key offset",
    handler: getbit,
    ..Command::DEFAULT
};

fn getbit(context: &mut Context<'_>) -> Result<(), Failure> {
    let offset = bits::offset(context, 2, 0)?;
    let mut is_set = false;
    context.store().get(&context.arguments[1], &mut |found| is_set = bits::bit(found.value, offset))?;
    context.reply.integer(i64::from(is_set));
    Ok(())
}
