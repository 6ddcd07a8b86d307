//! `PSUBSCRIBE pattern [pattern ...]`

use super::subscription::subscribe;
use super::{Command, Context, Failure};
use crate::pubsub::Topic;

pub(super) const COMMAND: Command = Command {
    name: "psubscribe",
    arity: -2,
    flags: &["pubsub", "noscript", "loading", "stale"],
    group: "pubsub",
    since: "2.0.0",
    complexity: "O(n) in the number of patterns",
    summary: "Listen for messages published to channels matching the given patterns",
    syntax: "pattern [pattern ...]",
    handler: psubscribe,
    ..Command::DEFAULT
};

fn psubscribe(context: &mut Context<'_>) -> Result<(), Failure> {
    subscribe(context, Topic::Pattern)
}
