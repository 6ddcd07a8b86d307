//! `HRANDFIELD key [count [WITHVALUES]]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hrandfield",
    arity: -2,
    flags: &["readonly"],
    keys: (1, 1, 1),
    group: "hash",
    since: "6.2.0",
    complexity: "O(n) in the number of fields returned, or of the hash if it is small",
    summary: "Get random fields of a hash",
    syntax: "key [count [WITHVALUES]]",
    handler: hrandfield,
    ..Command::DEFAULT
};

fn hrandfield(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let count = if arguments.len() > 2 { Some(members::count(context)?) } else { None };
    let has_values = match arguments.len() {
        2 | 3 => false,
        4 if context.is_word(3, "withvalues") => true,
        _ => return Err(Failure::SYNTAX),
    };
    if has_values && count.is_some_and(|count| !(i64::MIN / 2..=i64::MAX / 2).contains(&count)) {
        return Err(Failure::Fixed("ERR value is out of range"));
    }
    let picked = members::pick(context, &arguments[1], Kind::Hash, count)?;
    let Some(_) = count else {
        context.reply.optional_bulk(picked.first().map(|(field, _)| &**field));
        return Ok(());
    };
    // RESP3 has an array for each pair.
    let has_pairs = has_values && context.reply.version() == alluvium_protocol::Version::Resp3;
    context.reply.array(if has_values && !has_pairs { 2 * picked.len() } else { picked.len() });
    for (field, value) in &picked {
        if has_pairs {
            context.reply.array(2);
        }
        context.reply.bulk(field);
        if has_values {
            context.reply.bulk(value);
        }
    }
    Ok(())
}
