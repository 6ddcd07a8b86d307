//! `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::glob;

pub(super) const COMMAND: Command = Command {
    name: "scan",
    arity: -2,
    flags: &["readonly"],
    group: "generic",
    since: "2.8.0",
    complexity: "O(1) a call, O(n) for a complete iteration",
    summary: "Incrementally iterate the keys",
    syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
    handler: scan,
    ..Command::DEFAULT
};

const COUNT_DEFAULT: usize = 10;

/// Maximum number of keys visited in one call: `COUNT` is a hint, and other clients wait.
const COUNT_MAX: usize = 4096;

struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    /// No key has the type that was asked for.
    nothing: bool,
}

fn scan(context: &mut Context<'_>) -> Result<(), Failure> {
    let cursor =
        integer::parse_unsigned(&context.arguments[1]).ok_or(Failure::Fixed("ERR invalid cursor"))?;
    let filter = filter(context)?;
    // The keys are found before the cursor that is written before them.
    let mut keys: Vec<Box<[u8]>> = Vec::new();
    let next = context.store().scan(cursor, filter.count, &mut |key| {
        let matched = filter.pattern.is_none_or(|pattern| glob::matches(pattern, key, false));
        if matched && !filter.nothing {
            keys.push(key.into());
        }
    })?;
    context.reply.array(2);
    context.reply.bulk_unsigned(next);
    context.reply.array(keys.len());
    keys.iter().for_each(|key| context.reply.bulk(key));
    Ok(())
}

fn filter<'a>(context: &Context<'a>) -> Result<Filter<'a>, Failure> {
    let mut filter = Filter { pattern: None, count: COUNT_DEFAULT, nothing: false };
    let mut at = 2;
    while at < context.arguments.len() {
        let value = context.arguments.get(at + 1).ok_or(Failure::SYNTAX)?;
        if context.is_word(at, "match") {
            filter.pattern = Some(value);
        } else if context.is_word(at, "count") {
            let count = context.integer(at + 1)?;
            if count < 1 {
                return Err(Failure::SYNTAX);
            }
            filter.count = usize::try_from(count).unwrap_or(COUNT_MAX).min(COUNT_MAX);
        } else if context.is_word(at, "type") {
            filter.nothing = !context.is_word(at + 1, "string");
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 2;
    }
    Ok(filter)
}
