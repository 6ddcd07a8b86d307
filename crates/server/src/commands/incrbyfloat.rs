//! `INCRBYFLOAT key increment`

use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::extended::{Extended, Number};
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "incrbyfloat",
    arity: 3,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "string",
    since: "2.6.0",
    summary: "Increment the float value of a key by the given amount",
    syntax: "key increment",
    handler: incrbyfloat,
    ..Command::DEFAULT
};

const NOT_A_FLOAT: Failure = Failure::Fixed("ERR value is not a valid float");

fn incrbyfloat(context: &mut Context<'_>) -> Result<(), Failure> {
    let increment = &context.arguments[2];
    let mut outcome = Err(NOT_A_FLOAT);
    context.store().update(&context.arguments[1], &mut |current| {
        outcome = sum(current.map(|found| found.value), increment, NOT_A_FLOAT);
        match &outcome {
            Err(_) => Change::Keep,
            Ok(sum) => Change::Insert(sum.clone().into_bytes(), Keep::Everything),
        }
    })?;
    let sum = outcome?;
    context.changed(1, Event::INCRBYFLOAT);
    context.reply.bulk(sum.as_bytes());
    Ok(())
}

/// The sum as Redis writes it; `invalid` is the error if the current value is not a number.
pub(super) fn sum(current: Option<&[u8]>, increment: &[u8], invalid: Failure) -> Result<String, Failure> {
    let current = current.map_or(Some(Number::Finite(Extended::ZERO)), Number::parse).ok_or(invalid)?;
    let sum = match (current, Number::parse(increment).ok_or(NOT_A_FLOAT)?) {
        (Number::Finite(current), Number::Finite(increment)) => current.sum(increment),
        _ => None,
    };
    let sum = sum.ok_or(Failure::Fixed("ERR increment would produce NaN or Infinity"))?;
    Ok(sum.text())
}
