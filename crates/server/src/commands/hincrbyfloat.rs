//! `HINCRBYFLOAT key field increment`

use super::incrbyfloat::sum;
use super::{Command, Context, Failure, members};
use crate::changes::Event;
use crate::extended::Number;
use crate::store::Kind;

pub(super) const COMMAND: Command = Command {
    name: "hincrbyfloat",
    arity: 4,
    flags: &["write", "denyoom", "fast"],
    keys: (1, 1, 1),
    group: "hash",
    since: "2.6.0",
    complexity: "O(1)",
    summary: "Increment the float value of a field of a hash by the given amount",
    syntax: "key field increment",
    handler: hincrbyfloat,
    ..Command::DEFAULT
};

const NOT_A_FLOAT: Failure = Failure::Fixed("ERR hash value is not a float");

fn hincrbyfloat(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    match Number::parse(&arguments[3]) {
        Some(Number::Finite(_)) => {}
        Some(Number::Infinite) => return Err(Failure::Fixed("ERR value is NaN or Infinity")),
        None => return Err(Failure::Fixed("ERR value is not a valid float")),
    }
    let mut outcome = Err(NOT_A_FLOAT);
    members::write(context, &arguments[1], Kind::Hash, &mut |hash| {
        outcome = sum(hash.get(&arguments[2])?.as_deref(), &arguments[3], NOT_A_FLOAT);
        if let Ok(sum) = &outcome {
            hash.insert(&arguments[2], sum.as_bytes())?;
        }
        Ok(())
    })?;
    let sum = outcome?;
    context.changed(1, Event::HINCRBYFLOAT);
    context.reply.bulk(sum.as_bytes());
    Ok(())
}
