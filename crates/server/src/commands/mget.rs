//! `MGET key [key ...]`

use std::cell::RefCell;

use alluvium_protocol::Arguments;

use super::{Command, Context, Failure};
use crate::store::{Databases, FoundOrLong, StoreError};

pub(super) const COMMAND: Command = Command {
    name: "mget",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: (1, -1, 1),
    group: "string",
    complexity: "O(n) in the number of keys",
    summary: "Get the values of all the given keys",
    syntax: "key [key ...]",
    handler: mget,
    ..Command::DEFAULT
};

/// Keys looked up together. Once there is no room for the reply, no more is added to it.
const GROUP: usize = 128;
/// Maximum number of keys whose values are those of one moment: each is noted until all are read. More are read in
/// groups.
pub(super) const MOMENT_KEYS_MAX: usize = 8_192;

fn mget(context: &mut Context<'_>) -> Result<(), Failure> {
    let (keys, databases) = (context.arguments.from(1), context.databases);
    let start = context.reply.buffered_bytes();
    let mut has_room = true;
    if keys.len() == 1 || keys.len() > MOMENT_KEYS_MAX {
        has_room = write_values(context, databases, keys)?;
    } else {
        databases.at_one_moment(&mut |inside| {
            context.reply.rewind(start);
            has_room = write_values(context, inside, keys)?;
            Ok(())
        })?;
    }
    if has_room { Ok(()) } else { Err(Failure::ReplyTooLarge) }
}

/// Returns `false` once there is no room for the reply.
fn write_values(
    context: &mut Context<'_>,
    databases: &dyn Databases,
    keys: Arguments<'_>,
) -> Result<bool, StoreError> {
    let database = databases.database(context.session.database);
    context.reply.array(keys.len());
    let mut at = 0;
    while at < keys.len() {
        let mut group: [&[u8]; GROUP] = [&[]; GROUP];
        let mut grouped = 0;
        for (slot, key) in group.iter_mut().zip(keys.from(at).iter()) {
            *slot = key;
            grouped += 1;
        }
        let reply = RefCell::new(&mut context.reply);
        let mut read = Ok(());
        let mut admits = |bytes| reply.borrow().admits(bytes);
        database.get_many_or_long(&group[..grouped], &mut admits, &mut |_, found| match found {
            None => reply.borrow_mut().null(),
            Some(FoundOrLong::Found(found)) => reply.borrow_mut().optional_bulk(found.string()),
            Some(FoundOrLong::Long(long)) if read.is_ok() => {
                read = reply.borrow_mut().bulk_with(long.len, |out| long.read_into(out));
            }
            Some(FoundOrLong::Long(_)) => {}
        })?;
        read?;
        if !context.reply.admits(0) {
            return Ok(false);
        }
        at += grouped;
    }
    Ok(true)
}
