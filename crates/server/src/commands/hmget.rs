//! `HMGET key field [field ...]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hmget",
    arity: -3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.0.0",
    complexity: "O(1) for each field",
    summary: "Get the values of all the given fields of a hash",
    syntax: "key field [field ...]",
    handler: hmget,
    ..Command::DEFAULT
};

fn hmget(context: &mut Context<'_>) -> Result<(), Failure> {
    let fields = context.arguments.from(2);
    let mut values: Vec<Option<Vec<u8>>> = Vec::new();
    members::read_together(context, &context.arguments[1], Kind::Hash, fields.len(), &mut |hash| {
        values.clear();
        for field in fields.iter() {
            values.push(hash.map(|hash| hash.get(field)).transpose()?.flatten());
        }
        Ok(())
    })?;
    context.reply.array(values.len());
    values.iter().for_each(|value| context.reply.optional_bulk(value.as_deref()));
    Ok(())
}
