//! `GETEX key [EX seconds|PX milliseconds|EXAT unix-time-seconds|PXAT unix-time-milliseconds|PERSIST]`

use super::expiry::{future, option};
use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "getex",
    arity: -2,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "6.2.0",
    summary: "Get the value of a key and change when it expires",
    syntax: "key [EX seconds|PX milliseconds|EXAT time|PXAT time|PERSIST]",
    handler: getex,
    ..Command::DEFAULT
};

fn getex(context: &mut Context<'_>) -> Result<(), Failure> {
    // What the key gets as its expiry: nothing new, none, or a time.
    let expiry = match (context.arguments.len(), option(context, 2)) {
        (2, _) => None,
        (3, _) if context.is_word(2, "persist") => Some(None),
        (4, Some(kind)) => match future(context, 3, kind, "getex") {
            Ok(at_ms) => Some(Some(at_ms)),
            Err(failure) => return refuse(context, failure),
        },
        _ => return Err(Failure::SYNTAX),
    };
    let (mut before, mut event) = (None::<Vec<u8>>, None);
    context.store().update(&context.arguments[1], &mut |found| {
        before = found.map(|found| found.value.to_vec());
        event = None;
        match expiry {
            Some(expiry) if found.is_some_and(|found| found.expires_at_ms != expiry) => {
                event = Some(if expiry.is_some() { Event::EXPIRE } else { Event::PERSIST });
                Change::Expire(expiry)
            }
            _ => Change::Keep,
        }
    })?;
    if let Some(event) = event {
        context.changed(1, event);
    }
    context.reply.optional_bulk(before.as_deref());
    Ok(())
}

/// The reply to a bad expiry: an absent key is noticed before it.
fn refuse(context: &mut Context<'_>, failure: Failure) -> Result<(), Failure> {
    let mut is_present = false;
    context.store().get(&context.arguments[1], &mut |_| is_present = true)?;
    if is_present {
        return Err(failure);
    }
    context.reply.optional_bulk(None);
    Ok(())
}
