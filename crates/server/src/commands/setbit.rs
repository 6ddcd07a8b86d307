//! `SETBIT key offset value`

use alluvium_protocol::integer;

use super::bits;
use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "setbit",
    arity: 4,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "2.2.0",
    summary: "Set or clear the bit at an offset of the value of a key",
    syntax: "key offset value",
    handler: setbit,
    ..Command::DEFAULT
};

fn setbit(context: &mut Context<'_>) -> Result<(), Failure> {
    let offset = bits::offset(context, 2, 0)?;
    let is_set = match integer::parse(&context.arguments[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(Failure::Fixed("ERR bit is not an integer or out of range")),
    };
    let (mut was_set, mut is_changed) = (false, false);
    context.store().update(&context.arguments[1], &mut |found| {
        let current = found.map_or(&[][..], |found| found.value);
        was_set = bits::bit(current, offset);
        is_changed = was_set != is_set || offset / 8 >= current.len() as u64;
        if !is_changed {
            return Change::Keep;
        }
        let mut value = bits::extended(current, offset);
        bits::set_bit(&mut value, offset, is_set);
        Change::Insert(value, Keep::Everything)
    })?;
    if is_changed {
        context.changed(1, Event::SETBIT);
    }
    context.reply.integer(i64::from(was_set));
    Ok(())
}
