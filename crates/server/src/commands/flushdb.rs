//! `FLUSHDB [ASYNC|SYNC]`

use super::flushall::{self, check_options};
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "flushdb",
    summary: "Remove all keys from the current database",
    handler: flushdb,
    ..flushall::COMMAND
};

fn flushdb(context: &mut Context<'_>) -> Result<(), Failure> {
    check_options(context)?;
    context.store().clear()?;
    context.outbox.cleared(context.session.database);
    let (client, database) = (context.session.client.peer(), context.session.database);
    tracing::info!(client, database = database.position(), "a client removes all keys of its database");
    context.reply.ok();
    Ok(())
}
