//! `MOVE key db`

use super::transfer::{Outcome, Place, SAME, Source, database, transfer};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "move",
    arity: 3,
    flags: &["write", "fast"],
    keys: (1, 1, 1),
    complexity: "O(n) in the length of the value",
    summary: "Move a key to another database, if there is no such key",
    syntax: "key db",
    handler: move_,
    ..Command::DEFAULT
};

fn move_(context: &mut Context<'_>) -> Result<(), Failure> {
    let (here, there, key) =
        (context.session.database, database(context, 2)?, context.arguments.get(1).unwrap_or_default());
    if here == there {
        return Err(SAME);
    }
    let (from, to) = (Place { database: here, key }, Place { database: there, key });
    let outcome = transfer(context, from, to, Source::Goes, false)?;
    context.reply.integer((outcome == Outcome::Done).into());
    Ok(())
}
