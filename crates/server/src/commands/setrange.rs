//! `SETRANGE key offset value`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "setrange",
    arity: 4,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.2.0",
    complexity: "O(n) in the length of the new value of the key",
    summary: "Overwrite a part of the value of a key, starting at the given offset",
    syntax: "key offset value",
    handler: setrange,
    ..Command::DEFAULT
};

/// Bytes between the end of the old value and the offset become zeros. An empty value changes nothing.
fn setrange(context: &mut Context<'_>) -> Result<(), Failure> {
    const TOO_LONG: Failure = Failure::Fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    let part = &context.arguments[3];
    let offset =
        usize::try_from(context.integer(2)?).map_err(|_| Failure::Fixed("ERR offset is out of range"))?;
    let bytes_max = context.shared.options.limits.bulk_bytes_max;
    let end = offset.checked_add(part.len()).filter(|end| *end <= bytes_max);
    let mut length = Ok(0);
    context.store().update(&context.arguments[1], &mut |found| {
        let current = found.map_or(&[][..], |found| found.value);
        if part.is_empty() {
            length = Ok(current.len());
            return Change::Keep;
        }
        let Some(end) = end else {
            length = Err(TOO_LONG);
            return Change::Keep;
        };
        let mut value = Vec::with_capacity(current.len().max(end));
        value.extend_from_slice(current);
        value.resize(current.len().max(end), 0);
        value[offset..end].copy_from_slice(part);
        length = Ok(value.len());
        Change::Insert(value, Keep::Everything)
    })?;
    let length = length?;
    if !part.is_empty() {
        context.changed(1, Event::SETRANGE);
    }
    context.reply.count(length);
    Ok(())
}
