//! `SMOVE source destination member`

use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::data;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "smove",
    arity: 4,
    flags: &["write", "fast"],
    keys: (1, 2, 1),
    group: "set",
    since: "1.0.0",
    complexity: "O(1)",
    summary: "Move a member from one set to another",
    syntax: "source destination member",
    handler: smove,
    ..Command::DEFAULT
};

fn smove(context: &mut Context<'_>) -> Result<(), Failure> {
    let (arguments, number) = (context.arguments, context.session.database);
    let member = &arguments[3];
    let (mut is_moved, mut is_empty, mut is_new) = (false, false, false);
    context.databases.atomically(&mut |inside| {
        let (mut is_there, mut is_absent) = (false, true);
        data::read(inside.database(number), &arguments[1], Kind::Set, &mut |set| {
            is_absent = set.is_none();
            is_there = set.map(|set| set.get(member)).transpose()?.flatten().is_some();
            Ok(())
        })?;
        is_moved = is_there;
        if is_absent {
            return Ok(());
        }
        // The type of the destination is checked even if nothing moves.
        data::read(inside.database(number), &arguments[2], Kind::Set, &mut |_| Ok(()))?;
        if !is_there || arguments[1] == arguments[2] {
            return Ok(());
        }
        data::write(inside, number, &arguments[1], Kind::Set, &mut |set| {
            set.remove(member)?;
            is_empty = set.len() == 0;
            Ok(())
        })?;
        data::write(inside, number, &arguments[2], Kind::Set, &mut |set| {
            is_new = set.insert(member, b"")?;
            Ok(())
        })
    })?;
    if is_moved && arguments[1] != arguments[2] {
        members::removed(context, 1, Event::SREM, is_empty);
        if is_new {
            context.changed(2, Event::SADD);
        }
    }
    context.reply.integer(i64::from(is_moved));
    Ok(())
}
