//! `UNSUBSCRIBE [channel [channel ...]]`

use super::{Command, Context, Failure, subscription};
use crate::pubsub::Topic;

pub(super) const COMMAND: Command = Command {
    name: "unsubscribe",
    arity: -1,
    flags: &["pubsub", "noscript", "loading", "stale"],
    group: "pubsub",
    since: "2.0.0",
    complexity: "O(n) in the number of channels",
    summary: "Stop listening for messages posted to the given channels",
    syntax: "[channel [channel ...]]",
    handler: unsubscribe,
    ..Command::DEFAULT
};

fn unsubscribe(context: &mut Context<'_>) -> Result<(), Failure> {
    subscription::unsubscribe(context, Topic::Channel)
}
