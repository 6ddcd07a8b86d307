//! `DBSIZE`

use super::{Command, Context, Failure};
use crate::answer::Wanted;

pub(super) const COMMAND: Command = Command {
    name: "dbsize",
    arity: 1,
    flags: &["readonly"],
    group: "server",
    summary: "Return the number of keys",
    complexity: "O(1) while nothing changes, else O(n) beside other clients",
    handler: dbsize,
    ..Command::DEFAULT
};

/// Maximum number of items visited for a count while all clients of the worker wait: milliseconds.
pub(super) const QUICK_VISITS_MAX: u64 = 8192;

/// Exact, as in Redis. Writes do not look at what they replace, so the number is not known until the items are counted:
/// in a small store at once, in a larger one beside the workers, while the client waits.
fn dbsize(context: &mut Context<'_>) -> Result<(), Failure> {
    match context.store().count_within(QUICK_VISITS_MAX)? {
        Some(items) => context.reply.count(usize::try_from(items).unwrap_or(usize::MAX)),
        None if context.is_in_transaction => {
            return Err(Failure::Fixed(
                "ERR DBSIZE of a large database is not possible within a transaction",
            ));
        }
        None => context.session.wants = Some(Wanted::Count),
    }
    Ok(())
}
