//! `BITPOS key bit [start [end [BYTE|BIT]]]`

use super::bits;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "bitpos",
    arity: -3,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "2.8.7",
    complexity: "O(n) in the length of the value",
    summary: "Find the first bit that is set, or that is not, in the value of a key",
    syntax: "key bit [start [end [BYTE|BIT]]]",
    handler: bitpos,
    ..Command::DEFAULT
};

/// Without an end, zeros follow the value.
fn bitpos(context: &mut Context<'_>) -> Result<(), Failure> {
    let is_set = match context.integer(2)? {
        0 => false,
        1 => true,
        _ => return Err(Failure::Fixed("ERR The bit argument must be 1 or 0.")),
    };
    let mut value = None;
    context.store().get(&context.arguments[1], &mut |found| value = Some(found.value.to_vec()))?;
    let Some(value) = value else {
        context.reply.integer(if is_set { -1 } else { 0 });
        return Ok(());
    };
    if context.arguments.len() > 6 {
        return Err(Failure::SYNTAX);
    }
    let start = if context.arguments.len() > 3 { context.integer(3)? } else { 0 };
    let is_bits = bits::counts_bits(context, 5)?;
    let end = if context.arguments.len() > 4 { Some(context.integer(4)?) } else { None };
    let part = bits::part(start, end.unwrap_or(-1), is_bits, value.len());
    let past_end = part.end;
    let position = match bits::position(&value, part.clone(), is_set) {
        Some(position) => position as i64,
        None if !is_set && end.is_none() && !part.is_empty() => past_end as i64,
        None => -1,
    };
    context.reply.integer(position);
    Ok(())
}
