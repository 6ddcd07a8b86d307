//! `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`

use super::expiry::now_ms;
use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::dump_payload::{self, PayloadError};
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "restore",
    arity: -4,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    since: "2.6.0",
    complexity: "O(n) in the length of the value",
    summary: "Create a key from what DUMP returned",
    syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    handler: restore,
    ..Command::DEFAULT
};

#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

/// Checks idle times and frequencies, which nothing here depends on.
fn options(context: &Context<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let (mut has_idle_time, mut has_frequency, mut at) = (false, false, 4);
    while at < context.arguments.len() {
        let has_value = at + 1 < context.arguments.len();
        if context.is_word(at, "replace") {
            options.replaces = true;
        } else if context.is_word(at, "absttl") {
            options.is_absolute = true;
        } else if context.is_word(at, "idletime") && has_value && !has_frequency {
            at += 1;
            has_idle_time = true;
            if context.integer(at)? < 0 {
                return Err(Failure::Fixed("ERR Invalid IDLETIME value, must be >= 0"));
            }
        } else if context.is_word(at, "freq") && has_value && !has_idle_time {
            at += 1;
            has_frequency = true;
            if !(0..=255).contains(&context.integer(at)?) {
                return Err(Failure::Fixed("ERR Invalid FREQ value, must be >= 0 and <= 255"));
            }
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

fn restore(context: &mut Context<'_>) -> Result<(), Failure> {
    const BUSY: Failure = Failure::Fixed("BUSYKEY Target key name already exists.");
    let options = options(context)?;
    let key = &context.arguments[1];
    if !options.replaces && context.store().contains(key)? {
        return Err(BUSY);
    }
    let time = context.integer(2)?;
    if time < 0 {
        return Err(Failure::Fixed("ERR Invalid TTL value, must be >= 0"));
    }
    let bytes_max = context.shared.options.limits.bulk_bytes_max;
    let value = dump_payload::decode(&context.arguments[3], bytes_max).map_err(|error| match error {
        PayloadError::Footer => Failure::Fixed("ERR DUMP payload version or checksum are wrong"),
        PayloadError::Content => Failure::Fixed("ERR Bad data format"),
    })?;
    let at_ms = if options.is_absolute { time } else { time.saturating_add(now_ms()) };
    let change = match u64::try_from(at_ms) {
        _ if time == 0 => Change::Insert(value, Keep::Nothing),
        Ok(at) if at_ms > now_ms() => Change::Insert(value, Keep::NothingUntil(at)),
        // It has expired on the way: nothing is there afterwards.
        _ => Change::Remove,
    };
    let (mut outcome, mut existed) = (Ok(()), false);
    context.store().update_any(key, &mut |found| {
        outcome = if found.is_some() && !options.replaces { Err(BUSY) } else { Ok(()) };
        existed = found.is_some();
        if outcome.is_ok() { change.clone() } else { Change::Keep }
    })?;
    outcome?;
    match change {
        Change::Remove if existed => context.changed(1, Event::DEL),
        Change::Remove => {}
        _ => context.changed(1, Event::RESTORE),
    }
    context.reply.ok();
    Ok(())
}
