//! `SET key value [NX|XX] [GET] [KEEPTTL]`

use super::{Command, Context, Failure};
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "set",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Set the value of a key",
    syntax: "key value [NX|XX] [GET] [KEEPTTL]",
    handler: set,
    ..Command::DEFAULT
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Absent,
    Present,
}

/// The options after the value.
struct Options {
    condition: Condition,
    wants_previous: bool,
    keep: Keep,
}

fn set(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let (key, value) = (&arguments[1], &arguments[2]);
    if arguments.len() == 3 {
        context.store().insert(key, value)?;
        context.reply.ok();
        return Ok(());
    }
    let Options { condition, wants_previous, keep } = options(context)?;
    let mut previous: Option<Vec<u8>> = None;
    let mut stored = false;
    context.store().update(key, &mut |current| {
        previous = current.filter(|_| wants_previous).map(<[u8]>::to_vec);
        stored = match condition {
            Condition::Always => true,
            Condition::Absent => current.is_none(),
            Condition::Present => current.is_some(),
        };
        if stored { Change::Insert(value.to_vec(), keep) } else { Change::Keep }
    })?;
    match (wants_previous, stored) {
        (true, _) => context.reply.optional_bulk(previous.as_deref()),
        (false, true) => context.reply.ok(),
        (false, false) => context.reply.null(),
    }
    Ok(())
}

/// Items expire only if an import or the library gave them an expiry; an option that would set one is a syntax error
/// here.
fn options(context: &Context<'_>) -> Result<Options, Failure> {
    let (mut condition, mut wants_previous, mut keep) = (Condition::Always, false, Keep::Nothing);
    for at in 3..context.arguments.len() {
        if context.is_word(at, "nx") && condition != Condition::Present {
            condition = Condition::Absent;
        } else if context.is_word(at, "xx") && condition != Condition::Absent {
            condition = Condition::Present;
        } else if context.is_word(at, "get") {
            wants_previous = true;
        } else if context.is_word(at, "keepttl") {
            keep = Keep::Expiry;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(Options { condition, wants_previous, keep })
}
