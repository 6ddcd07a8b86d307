//! `SET key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT time|PXAT time|KEEPTTL]`

use super::expiry::{future, option};
use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::data;
use crate::store::{Change, Keep, Kind, StoreError, WrongType};

pub(super) const COMMAND: Command = Command {
    name: "set",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "string",
    summary: "Set the value of a key",
    syntax: "key value [NX|XX] [GET] [EX seconds|PX milliseconds|EXAT time|PXAT time|KEEPTTL]",
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
    let Options { condition, wants_previous, keep } = options(context)?;
    let expires_at_ms = match keep {
        _ if wants_previous || condition != Condition::Always => None,
        Keep::Nothing => Some(None),
        Keep::NothingUntil(at_ms) => Some(Some(at_ms)),
        Keep::Expiry | Keep::Everything => None,
    };
    // What does not depend on the old value is written without reading it.
    if let Some(expires_at_ms) = expires_at_ms {
        context.store().insert(key, value, expires_at_ms)?;
        note(context, keep);
        context.reply.ok();
        return Ok(());
    }
    let mut previous: Option<Vec<u8>> = None;
    let mut stored = false;
    let (mut is_string, mut replaced) = (true, None);
    context.store().update_any(key, &mut |found| {
        is_string = found.is_none_or(|found| found.kind == Kind::String);
        if wants_previous && !is_string {
            return Change::Keep;
        }
        previous = found.filter(|_| wants_previous).map(|found| found.value.to_vec());
        stored = match condition {
            Condition::Always => true,
            Condition::Absent => found.is_none(),
            Condition::Present => found.is_some(),
        };
        replaced = found.filter(|_| stored).and_then(|found| data::id_of(found.kind, found.value));
        if stored { Change::Insert(value.to_vec(), keep) } else { Change::Keep }
    })?;
    if let Some(id) = replaced {
        context.store().discard_collection(id)?;
    }
    if stored {
        note(context, keep);
    }
    match (wants_previous, stored) {
        (true, _) if !is_string => return Err(StoreError::from(WrongType).into()),
        (true, _) => context.reply.optional_bulk(previous.as_deref()),
        (false, true) => context.reply.ok(),
        (false, false) => context.reply.null(),
    }
    Ok(())
}

fn note(context: &mut Context<'_>, keep: Keep) {
    context.changed(1, Event::SET);
    if matches!(keep, Keep::NothingUntil(_)) {
        context.changed(1, Event::EXPIRE);
    }
}

fn options(context: &Context<'_>) -> Result<Options, Failure> {
    let (mut condition, mut wants_previous, mut keep) = (Condition::Always, false, Keep::Nothing);
    let mut at = 3;
    while at < context.arguments.len() {
        let kind = option(context, at).filter(|_| keep == Keep::Nothing);
        if context.is_word(at, "nx") && condition != Condition::Present {
            condition = Condition::Absent;
        } else if context.is_word(at, "xx") && condition != Condition::Absent {
            condition = Condition::Present;
        } else if context.is_word(at, "get") {
            wants_previous = true;
        } else if context.is_word(at, "keepttl") && matches!(keep, Keep::Nothing | Keep::Expiry) {
            keep = Keep::Expiry;
        } else if let Some(kind) = kind
            && at + 1 < context.arguments.len()
        {
            at += 1;
            keep = Keep::NothingUntil(future(context, at, kind, "set")?);
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(Options { condition, wants_previous, keep })
}
