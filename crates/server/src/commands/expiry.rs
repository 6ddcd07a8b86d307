//! Times at which keys expire: what the commands about them share.

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Context, Failure};
use crate::changes::Event;
use crate::data;
use crate::store::Change;

/// In which unit a client gives and gets times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
}

/// From when a client counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Now,
    Epoch,
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// The unit and base of an option of `SET` and `GETEX`, if the argument at this position is one.
pub(super) fn option(context: &Context<'_>, at: usize) -> Option<(Unit, Base)> {
    [
        ("ex", Unit::Seconds, Base::Now),
        ("px", Unit::Milliseconds, Base::Now),
        ("exat", Unit::Seconds, Base::Epoch),
        ("pxat", Unit::Milliseconds, Base::Epoch),
    ]
    .into_iter()
    .find_map(|(word, unit, base)| context.is_word(at, word).then_some((unit, base)))
}

/// The time that the argument at this position stands for, in milliseconds since 1970; at least 1 from `base` on.
pub(super) fn future(
    context: &Context<'_>,
    at: usize,
    (unit, base): (Unit, Base),
    command: &str,
) -> Result<u64, Failure> {
    let time = context.integer(at)?;
    let at_ms = if time > 0 { absolute_ms(time, unit, base) } else { None };
    at_ms.and_then(|at_ms| u64::try_from(at_ms).ok()).ok_or_else(|| invalid(command))
}

fn absolute_ms(time: i64, unit: Unit, base: Base) -> Option<i64> {
    let ms = match unit {
        Unit::Seconds => time.checked_mul(1_000)?,
        Unit::Milliseconds => time,
    };
    match base {
        Base::Now => ms.checked_add(now_ms()),
        Base::Epoch => Some(ms),
    }
}

fn invalid(command: &str) -> Failure {
    Failure::Text(format!("ERR invalid expire time in '{command}' command"))
}

/// When `EXPIRE` and the like may change what is there.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    absent: bool,
    present: bool,
    greater: bool,
    less: bool,
}

impl Conditions {
    fn of(context: &Context<'_>) -> Result<Self, Failure> {
        let mut conditions = Self::default();
        for at in 3..context.arguments.len() {
            let Self { absent, present, greater, less } = &mut conditions;
            let words = [("nx", absent), ("xx", present), ("gt", greater), ("lt", less)];
            match words.into_iter().find(|(word, _)| context.is_word(at, word)) {
                Some((_, condition)) => *condition = true,
                None => {
                    let option = String::from_utf8_lossy(&context.arguments[at]);
                    return Err(Failure::Text(format!("ERR Unsupported option {option}")));
                }
            }
        }
        let Self { absent, present, greater, less } = conditions;
        if absent && (present || greater || less) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(Failure::Fixed(text));
        }
        if greater && less {
            return Err(Failure::Fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether a key that expires then may expire at `at_ms`. A key that does not expire counts as one that expires
    /// infinitely late.
    fn hold(self, expires_at_ms: Option<u64>, at_ms: i64) -> bool {
        let now = expires_at_ms.map(|now| i64::try_from(now).unwrap_or(i64::MAX));
        !(self.absent && now.is_some()
            || self.present && now.is_none()
            || self.greater && now.is_none_or(|now| at_ms <= now)
            || self.less && now.is_some_and(|now| at_ms >= now))
    }
}

/// Lets the first key expire at the time that is the second argument: replies 1 if it does. A time that has passed
/// removes the key.
pub(super) fn set_expiry(context: &mut Context<'_>, unit: Unit, base: Base) -> Result<(), Failure> {
    let conditions = Conditions::of(context)?;
    let command = String::from_utf8_lossy(&context.arguments[0]).to_ascii_lowercase();
    let at_ms = absolute_ms(context.integer(2)?, unit, base).ok_or_else(|| invalid(&command))?;
    let (mut is_changed, mut removed, mut event) = (false, None, Event::EXPIRE);
    context.store().update_any(&context.arguments[1], &mut |found| {
        is_changed = found.is_some_and(|found| conditions.hold(found.expires_at_ms, at_ms));
        event = Event::EXPIRE;
        match u64::try_from(at_ms) {
            _ if !is_changed => Change::Keep,
            Ok(at) if at_ms > now_ms() => Change::Expire(Some(at)),
            _ => {
                event = Event::DEL;
                removed = found.and_then(|found| data::id_of(found.kind, found.value));
                Change::Remove
            }
        }
    })?;
    if let Some(id) = removed.filter(|_| is_changed) {
        context.store().discard_collection(id)?;
    }
    if is_changed {
        context.changed(1, event);
    }
    context.reply.integer(i64::from(is_changed));
    Ok(())
}

/// Replies when the key expires: -1 if it does not, -2 if there is none.
pub(super) fn get_expiry(context: &mut Context<'_>, unit: Unit, base: Base) -> Result<(), Failure> {
    let mut found = None;
    context.store().get_any(&context.arguments[1], &mut |item| found = Some(item.expires_at_ms))?;
    let time = match found {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => {
            let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
            let ms = if base == Base::Now { (at_ms - now_ms()).max(0) } else { at_ms };
            if unit == Unit::Seconds { ms.saturating_add(500) / 1_000 } else { ms }
        }
    };
    context.reply.integer(time);
    Ok(())
}
