//! `HGETALL key`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hgetall",
    arity: 2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(n) in the number of fields",
    summary: "Get all fields and values of a hash",
    syntax: "key",
    handler: hgetall,
    ..Command::DEFAULT
};

fn hgetall(context: &mut Context<'_>) -> Result<(), Failure> {
    let fields = members::collect(context, &context.arguments[1], Kind::Hash)?;
    context.reply.map(fields.len());
    for (field, value) in &fields {
        context.reply.bulk(field);
        context.reply.bulk(value);
    }
    Ok(())
}
