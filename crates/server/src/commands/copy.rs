//! `COPY source destination [DB destination-db] [REPLACE]`

use super::transfer::{Outcome, Place, SAME, Source, database, transfer};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "copy",
    arity: -3,
    flags: &["write", "denyoom"],
    keys: (1, 2, 1),
    since: "6.2.0",
    complexity: "O(n) in the length of the value",
    summary: "Copy a key",
    syntax: "source destination [DB destination-db] [REPLACE]",
    handler: copy,
    ..Command::DEFAULT
};

fn copy(context: &mut Context<'_>) -> Result<(), Failure> {
    let here = context.session.database;
    let (mut there, mut replaces, mut at) = (here, false, 3);
    while at < context.arguments.len() {
        if context.is_word(at, "replace") {
            replaces = true;
        } else if context.is_word(at, "db") && at + 1 < context.arguments.len() {
            at += 1;
            there = database(context, at)?;
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    let from = Place { database: here, key: context.arguments.get(1).unwrap_or_default() };
    let to = Place { database: there, key: context.arguments.get(2).unwrap_or_default() };
    if here == there && from.key == to.key {
        return Err(SAME);
    }
    let outcome = transfer(context, from, to, Source::Stays, replaces)?;
    context.reply.integer((outcome == Outcome::Done).into());
    Ok(())
}
