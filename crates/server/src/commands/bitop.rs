//! `BITOP AND|OR|XOR|NOT destkey key [key ...]`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::Change;

pub(super) const COMMAND: Command = Command {
    name: "bitop",
    arity: -4,
    flags: &["write", "denyoom"],
    keys: (2, -1, 1),
    group: "bitmap",
    since: "2.6.0",
    complexity: "O(n) in the lengths of the values",
    summary: "Combine the values of keys bit by bit and store the result",
    syntax: "AND|OR|XOR|NOT destkey key [key ...]",
    handler: bitop,
    ..Command::DEFAULT
};

type Combine = fn(u8, u8) -> u8;

/// Shorter values are as if zeros followed. An empty result removes the destination.
fn bitop(context: &mut Context<'_>) -> Result<(), Failure> {
    let words: [(&str, Option<Combine>); 4] =
        [("and", Some(|a, b| a & b)), ("or", Some(|a, b| a | b)), ("xor", Some(|a, b| a ^ b)), ("not", None)];
    let found = words.into_iter().find(|(word, _)| context.is_word(1, word));
    let (_, combine) = found.ok_or(Failure::SYNTAX)?;
    let (destination, keys) = (&context.arguments[2], context.arguments.from(3));
    if combine.is_none() && keys.len() != 1 {
        return Err(Failure::Fixed("ERR BITOP NOT must be called with a single source key."));
    }
    let (mut bytes, mut existed) = (0, false);
    let database = context.session.database;
    context.databases.atomically(&mut |inside| {
        let inside = inside.database(database);
        let mut result: Option<Vec<u8>> = None;
        for key in keys.iter() {
            let mut value = Vec::new();
            inside.get(key, &mut |found| value.extend_from_slice(found.value))?;
            result = Some(match result.zip(combine) {
                Some((result, combine)) => combined(result, value, combine),
                None => value,
            });
        }
        let mut result = result.unwrap_or_default();
        if combine.is_none() {
            result.iter_mut().for_each(|byte| *byte = !*byte);
        }
        bytes = result.len();
        if result.is_empty() {
            inside.update_any(destination, &mut |found| {
                existed = found.is_some();
                Change::Remove
            })
        } else {
            inside.insert(destination, &result, None)
        }
    })?;
    match bytes {
        0 if existed => context.changed(2, Event::DEL),
        0 => {}
        _ => context.changed(2, Event::SET),
    }
    context.reply.count(bytes);
    Ok(())
}

/// Both values bit by bit, as long as the longer one.
fn combined(mut value: Vec<u8>, other: Vec<u8>, combine: Combine) -> Vec<u8> {
    value.resize(value.len().max(other.len()), 0);
    let padded = other.into_iter().chain(std::iter::repeat(0));
    value.iter_mut().zip(padded).for_each(|(byte, other)| *byte = combine(*byte, other));
    value
}
