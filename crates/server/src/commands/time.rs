//! `TIME`

use std::time::{SystemTime, UNIX_EPOCH};

use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "time",
    arity: 1,
    flags: &["loading", "stale", "fast"],
    group: "server",
    since: "2.6.0",
    summary: "Return the server's time: seconds since 1970 and microseconds",
    handler: time,
    ..Command::DEFAULT
};

fn time(context: &mut Context<'_>) -> Result<(), Failure> {
    // A clock before 1970 is reported as 1970.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    context.reply.array(2);
    context.reply.bulk_unsigned(now.as_secs());
    context.reply.bulk_unsigned(now.subsec_micros().into());
    Ok(())
}
