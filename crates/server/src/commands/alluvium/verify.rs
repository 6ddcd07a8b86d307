//! `ALLUVIUM.VERIFY`

use super::{ALLUVIUM, Command, Context, Failure};
use crate::answer::Wanted;
use crate::chores::Chore;

pub(in crate::commands) const COMMAND: Command = Command {
    name: "alluvium.verify",
    arity: 1,
    complexity: "O(n) in the size of the database, beside other clients",
    summary: "Read and check all that is stored, and list the problems",
    handler: verify,
    ..ALLUVIUM
};

fn verify(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.wants = Some(Wanted::Chore(Chore::Verify));
    Ok(())
}
