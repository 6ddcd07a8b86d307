//! `TOUCH key [key ...]`

use super::exists::exists;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "touch",
    arity: -2,
    flags: &["readonly", "fast"],
    keys: (1, -1, 1),
    since: "3.2.1",
    complexity: "O(n) in the number of keys",
    summary: "Count the keys that exist",
    syntax: "key [key ...]",
    handler: touch,
    ..Command::DEFAULT
};

/// Nothing here depends on when a key was last used.
fn touch(context: &mut Context<'_>) -> Result<(), Failure> {
    exists(context)
}
