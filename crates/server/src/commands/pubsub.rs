//! `PUBSUB …`: what clients have subscribed to.

use super::{Command, Context, Failure};

const SUBCOMMAND: Command =
    Command { flags: &["pubsub", "loading", "stale"], group: "pubsub", since: "2.8.0", ..Command::DEFAULT };

pub(super) const COMMAND: Command = Command {
    name: "pubsub",
    arity: -2,
    summary: "Inspect the state of subscriptions",
    syntax: "subcommand",
    subcommands: &[
        Command {
            name: "channels",
            arity: -2,
            complexity: "O(n) in the number of channels",
            summary: "List the channels with subscribers, or those that match a pattern",
            syntax: "[pattern]",
            handler: channels,
            ..SUBCOMMAND
        },
        Command {
            name: "numpat",
            arity: 2,
            summary: "Count the patterns with subscribers",
            handler: numpat,
            ..SUBCOMMAND
        },
        Command {
            name: "numsub",
            arity: -2,
            complexity: "O(n) in the number of channels",
            summary: "Count the subscribers of channels",
            syntax: "[channel [channel ...]]",
            handler: numsub,
            ..SUBCOMMAND
        },
    ],
    ..SUBCOMMAND
};

fn channels(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.arguments.len() > 3 {
        return Err(Failure::arity("pubsub|channels"));
    }
    let names = context.shared.subscribers.channels(context.arguments.get(2));
    context.reply.array(names.len());
    names.iter().for_each(|name| context.reply.bulk(name));
    Ok(())
}

fn numsub(context: &mut Context<'_>) -> Result<(), Failure> {
    let names = context.arguments.from(2);
    context.reply.array(2 * names.len());
    for name in names.iter() {
        context.reply.bulk(name);
        context.reply.count(context.shared.subscribers.count(name));
    }
    Ok(())
}

fn numpat(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.count(context.shared.subscribers.patterns());
    Ok(())
}
