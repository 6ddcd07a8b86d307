//! `GETRANGE key start end`

use std::ops::Range;

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "getrange",
    arity: 4,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.4.0",
    complexity: "O(n) in the length of the part",
    summary: "Get a part of the value of a key",
    syntax: "key start end",
    handler: getrange,
    ..Command::DEFAULT
};

/// Negative positions count from the end.
pub(super) fn getrange(context: &mut Context<'_>) -> Result<(), Failure> {
    let (start, end) = (context.integer(2)?, context.integer(3)?);
    let reply = &mut context.reply;
    let mut is_found = false;
    context.databases.database(context.session.database).get(&context.arguments[1], &mut |found| {
        is_found = true;
        let part = part(start, end, found.value.len()).map_or(&[][..], |part| &found.value[part]);
        reply.bulk(part);
    })?;
    if !is_found {
        context.reply.bulk(b"");
    }
    Ok(())
}

/// The positions of a part of `len` bytes; `None` if it is empty.
fn part(start: i64, end: i64, len: usize) -> Option<Range<usize>> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let from_front =
        |position: i64| if position < 0 { position.saturating_add(len).max(0) } else { position };
    let (start, end) = (from_front(start), from_front(end).min(len - 1));
    (start <= end && len > 0).then(|| start as usize..end as usize + 1)
}
