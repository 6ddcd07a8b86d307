//! `BITCOUNT key [start end [BYTE|BIT]]`

use std::ops::Range;

use super::bits;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "bitcount",
    arity: -2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "2.6.0",
    complexity: "O(n) in the length of the value",
    summary: "Count the set bits in the value of a key",
    syntax: "key [start end [BYTE|BIT]]",
    handler: bitcount,
    ..Command::DEFAULT
};

fn bitcount(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut value = None;
    context.store().get(&context.arguments[1], &mut |found| value = Some(found.value.to_vec()))?;
    // As in Redis, the range is not looked at if there is no value.
    let count = match value {
        None => 0,
        Some(value) => bits::count(&value, range(context, value.len())?),
    };
    context.reply.integer(count as i64);
    Ok(())
}

fn range(context: &Context<'_>, bytes: usize) -> Result<Range<u64>, Failure> {
    let (start, end) = match context.arguments.len() {
        2 => (0, -1),
        4 | 5 => (context.integer(2)?, context.integer(3)?),
        _ => return Err(Failure::SYNTAX),
    };
    if start < 0 && end < 0 && start > end {
        return Ok(0..0);
    }
    Ok(bits::part(start, end, bits::counts_bits(context, 4)?, bytes))
}
