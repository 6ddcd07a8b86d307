//! `SUBSCRIBE channel [channel ...]`

use super::{Command, Context, Failure, subscription};
use crate::pubsub::Topic;

pub(super) const COMMAND: Command = Command {
    name: "subscribe",
    arity: -2,
    flags: &["pubsub", "noscript", "loading", "stale"],
    group: "pubsub",
    since: "2.0.0",
    complexity: "O(n) in the number of channels",
    summary: "Listen for messages published to the given channels",
    syntax: "channel [channel ...]",
    handler: subscribe,
    ..Command::DEFAULT
};

fn subscribe(context: &mut Context<'_>) -> Result<(), Failure> {
    subscription::subscribe(context, Topic::Channel)
}
