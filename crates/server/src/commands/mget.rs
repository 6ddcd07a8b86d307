//! `MGET key [key ...]`

use super::{Command, Context, Failure};
use crate::store::Found;

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

/// Keys looked up together. Once the reply is too large, no more is added to it.
const GROUP: usize = 128;

fn mget(context: &mut Context<'_>) -> Result<(), Failure> {
    let keys = context.arguments.from(1);
    let bytes_max = context.shared.options.output_bytes_max;
    context.reply.array(keys.len());
    let mut at = 0;
    while at < keys.len() {
        let mut group: [&[u8]; GROUP] = [&[]; GROUP];
        let mut grouped = 0;
        for (slot, key) in group.iter_mut().zip(keys.from(at).iter()) {
            *slot = key;
            grouped += 1;
        }
        let reply = &mut context.reply;
        let database = context.databases.database(context.session.database);
        database.get_many(&group[..grouped], &mut |_, found| {
            if reply.buffered_bytes() <= bytes_max {
                reply.optional_bulk(found.and_then(Found::string));
            }
        })?;
        if reply.buffered_bytes() > bytes_max {
            return Err(Failure::ReplyTooLarge);
        }
        at += grouped;
    }
    Ok(())
}
