//! Intersections, unions and differences of sets.

use std::collections::BTreeSet;

use alluvium_protocol::Arguments;

use super::{Context, Failure};
use crate::changes::Event;
use crate::data;
use crate::store::{Change, DatabaseNumber, Databases, Kind, StoreError};

/// What is made of several sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Difference,
    Intersection,
    Union,
}

type Set = BTreeSet<Box<[u8]>>;

/// Replies with the set that is made of those under `keys`.
pub(super) fn reply(
    context: &mut Context<'_>,
    operation: Operation,
    keys: Arguments<'_>,
) -> Result<(), Failure> {
    let number = context.session.database;
    let mut result = Set::new();
    // A transaction, so that all sets are those of one moment.
    context.databases.atomically(&mut |inside| {
        result = combine(inside, number, operation, keys)?;
        Ok(())
    })?;
    context.reply.set(result.len());
    result.iter().for_each(|member| context.reply.bulk(member));
    if context.reply.buffered_bytes() > context.shared.options.output_bytes_max {
        return Err(Failure::ReplyTooLarge);
    }
    Ok(())
}

/// Number of members of the intersection of the sets under `keys`.
pub(super) fn intersection_len(context: &Context<'_>, keys: Arguments<'_>) -> Result<usize, Failure> {
    let number = context.session.database;
    let mut len = 0;
    context.databases.atomically(&mut |inside| {
        len = combine(inside, number, Operation::Intersection, keys)?.len();
        Ok(())
    })?;
    Ok(len)
}

/// Stores the set that is made of those under the second and later arguments under the first, and replies with the
/// number of its members.
pub(super) fn store(context: &mut Context<'_>, operation: Operation) -> Result<(), Failure> {
    let (arguments, number) = (context.arguments, context.session.database);
    let (mut len, mut existed) = (0, false);
    context.databases.atomically(&mut |inside| {
        let result = combine(inside, number, operation, arguments.from(2))?;
        len = result.len();
        let (database, mut replaced) = (inside.database(number), None);
        database.update_any(&arguments[1], &mut |found| {
            existed = found.is_some();
            replaced = found.and_then(|found| data::id_of(found.kind, found.value));
            Change::Remove
        })?;
        if let Some(id) = replaced {
            database.discard_collection(id)?;
        }
        data::write(inside, number, &arguments[1], Kind::Set, &mut |set| {
            result.iter().try_for_each(|member| set.insert(member, b"").map(drop))
        })
    })?;
    match (len, operation) {
        (0, _) if existed => context.changed(1, Event::DEL),
        (0, _) => {}
        (_, Operation::Difference) => context.changed(1, Event::SDIFFSTORE),
        (_, Operation::Intersection) => context.changed(1, Event::SINTERSTORE),
        (_, Operation::Union) => context.changed(1, Event::SUNIONSTORE),
    }
    context.reply.count(len);
    Ok(())
}

fn combine(
    databases: &dyn Databases,
    number: DatabaseNumber,
    operation: Operation,
    keys: Arguments<'_>,
) -> Result<Set, StoreError> {
    let mut result: Option<Set> = None;
    for key in keys.iter() {
        let mut set = Set::new();
        data::read(databases.database(number), key, Kind::Set, &mut |members| match members {
            // Only members that count: the others need no memory.
            Some(members) => members.for_each(&mut |member, _| {
                let counts = match (operation, &result) {
                    (Operation::Union, _) | (_, None) => true,
                    (_, Some(result)) => result.contains(member),
                };
                if counts {
                    set.insert(member.into());
                }
            }),
            None => Ok(()),
        })?;
        result = Some(match (operation, result) {
            (_, None) | (Operation::Intersection, _) => set,
            (Operation::Union, Some(mut result)) => {
                result.append(&mut set);
                result
            }
            (Operation::Difference, Some(mut result)) => {
                result.retain(|member| !set.contains(member));
                result
            }
        });
    }
    Ok(result.unwrap_or_default())
}
