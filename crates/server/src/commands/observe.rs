//! What is noted about a command before and after its execution, if anybody wants to know.

use alluvium_protocol::Arguments;

use super::key_use::key_positions;
use super::{Command, Context, Failure};
use crate::changes::{self, Classes, Observed};
use crate::monitors;
use crate::store::{DatabaseNumber, StoreError};

/// Where the keys of subcommands begin: those of `OBJECT` and `MEMORY` look at keys unnoticed.
const OF_SUBCOMMAND: i32 = 2;

/// Executes a command.
#[inline]
pub(super) fn execute(command: &'static Command, context: &mut Context<'_>) -> Result<(), Failure> {
    let observed = context.shared.observers.get();
    if observed.is_empty() {
        (command.handler)(context)
    } else {
        execute_observed(command, context, observed)
    }
}

#[cold]
fn execute_observed(
    command: &'static Command,
    context: &mut Context<'_>,
    observed: Observed,
) -> Result<(), Failure> {
    let (arguments, shared, database) = (context.arguments, context.shared, context.session.database);
    // Scripts count by their commands.
    let is_script = command.flags.contains(&"noscript");
    let is_read = command.flags.contains(&"readonly") && !is_script;
    let mut registered = Vec::new();
    if is_read && context.session.registers_reads() {
        // Before the read: see `crate::tracking`.
        registered =
            shared.tracking.remember(context.session.id, keys(command, arguments), &shared.connected);
    }
    let classes = observed.classes();
    if command.is_write() && !is_script && classes.intersects(Classes::NEW) {
        note_absent(command, context)?;
    }
    let outcome = (command.handler)(context);
    context.outbox.absent.clear();
    for key in registered {
        changes::note_expiry(shared, database, key);
    }
    if is_read && outcome.is_ok() && classes.intersects(Classes::MISS) && command.keys.0 != OF_SUBCOMMAND {
        for key in keys(command, arguments) {
            if !context.databases.database(database).contains(key)? {
                changes::missed(context.outbox, shared, database, key);
            }
        }
    }
    if !command.flags.iter().any(|flag| ["admin", "skip_monitor"].contains(flag)) {
        show(command, context);
    }
    outcome
}

/// Shows the command to clients that monitor the server, if there are any.
pub(super) fn show(command: &Command, context: &mut Context<'_>) {
    if context.shared.observers.get().has_monitors() {
        let line = monitors::line(context.session, command.name, context.arguments);
        context.shared.monitors.show(&line, context.outbox);
    }
}

fn keys<'a>(command: &Command, arguments: Arguments<'a>) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    key_positions(command, arguments).into_iter().filter_map(move |position| arguments.get(position))
}

/// Notes which keys of the command are not there before it.
fn note_absent(command: &Command, context: &mut Context<'_>) -> Result<(), StoreError> {
    let database = context.session.database;
    let mut absent: Vec<(DatabaseNumber, Box<[u8]>)> = Vec::new();
    for key in keys(command, context.arguments) {
        if !context.store().contains(key)? {
            absent.push((database, key.into()));
        }
    }
    absent.sort_unstable();
    absent.dedup();
    context.outbox.absent = absent;
    Ok(())
}
