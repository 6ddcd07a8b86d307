//! `PUNSUBSCRIBE [pattern [pattern ...]]`

use super::subscription::unsubscribe;
use super::{Command, Context, Failure};
use crate::pubsub::Topic;

pub(super) const COMMAND: Command = Command {
    name: "punsubscribe",
    arity: -1,
    flags: &["pubsub", "noscript", "loading", "stale"],
    group: "pubsub",
    since: "2.0.0",
    complexity: "O(n) in the number of patterns",
    summary: "Stop listening for messages posted to channels matching the given patterns",
    syntax: "[pattern [pattern ...]]",
    handler: punsubscribe,
    ..Command::DEFAULT
};

fn punsubscribe(context: &mut Context<'_>) -> Result<(), Failure> {
    unsubscribe(context, Topic::Pattern)
}
