//! `HKEYS key`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hkeys",
    arity: 2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(n) in the number of fields",
    summary: "Get all fields of a hash",
    syntax: "key",
    handler: hkeys,
    ..Command::DEFAULT
};

fn hkeys(context: &mut Context<'_>) -> Result<(), Failure> {
    let fields = members::collect(context, &context.arguments[1], Kind::Hash)?;
    context.reply.array(fields.len());
    fields.iter().for_each(|(field, _)| context.reply.bulk(field));
    Ok(())
}
