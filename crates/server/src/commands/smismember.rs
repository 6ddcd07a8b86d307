//! `SMISMEMBER key member [member ...]`

use super::{Command, Context, Failure, members};
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "smismember",
    arity: -3,
    flags: &["readonly", "fast"],
    keys: (1, 1, 1),
    group: "set",
    since: "6.2.0",
    complexity: "O(1) for each member",
    summary: "Determine whether values are members of a set",
    syntax: "key member [member ...]",
    handler: smismember,
    ..Command::DEFAULT
};

fn smismember(context: &mut Context<'_>) -> Result<(), Failure> {
    let values = context.arguments.from(2);
    let mut are_members = Vec::new();
    members::read_together(context, &context.arguments[1], Kind::Set, values.len(), &mut |set| {
        are_members.clear();
        for value in values.iter() {
            are_members.push(set.map(|set| set.get(value)).transpose()?.flatten().is_some());
        }
        Ok(())
    })?;
    context.reply.array(are_members.len());
    are_members.iter().for_each(|is_member| context.reply.integer(i64::from(*is_member)));
    Ok(())
}
