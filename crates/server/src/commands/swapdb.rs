//! `SWAPDB index1 index2`

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::store::DatabaseNumber;

pub(super) const COMMAND: Command = Command {
    name: "swapdb",
    arity: 3,
    flags: &["write", "fast", "no_multi"],
    group: "server",
    since: "4.0.0",
    summary: "Exchange two databases",
    syntax: "index1 index2",
    handler: swap,
    ..Command::DEFAULT
};

fn swap(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.is_in_transaction {
        return Err(Failure::Fixed("ERR SWAPDB is not possible within a script"));
    }
    let number = |at: usize, text| {
        let number = integer::parse(&context.arguments[at]).ok_or(Failure::Fixed(text))?;
        DatabaseNumber::new(number).ok_or(Failure::Fixed("ERR DB index is out of range"))
    };
    let one = number(1, "ERR invalid first DB index")?;
    let other = number(2, "ERR invalid second DB index")?;
    context.shared.store.swap(one, other)?;
    // They are noted by the numbers of databases.
    [one, other].into_iter().for_each(|number| context.shared.expiries.clear(number));
    context.reply.ok();
    Ok(())
}
