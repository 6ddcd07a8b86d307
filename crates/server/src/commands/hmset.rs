//! `HMSET key field value [field value ...]`

use super::hset::set_fields;
use super::{Command, Context, Failure};

pub(super) const COMMAND: Command = Command {
    name: "hmset",
    arity: -4,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1) for each field",
    summary: "Set the values of fields of a hash",
    syntax: "key field value [field value ...]",
    handler: hmset,
    ..Command::DEFAULT
};

fn hmset(context: &mut Context<'_>) -> Result<(), Failure> {
    set_fields(context, "hmset")?;
    context.reply.ok();
    Ok(())
}
