//! What the commands that subscribe and unsubscribe share.

use super::{Context, Failure};
use crate::pubsub::Topic;

/// Subscribes to all arguments; one reply for each.
pub(super) fn subscribe(context: &mut Context<'_>, topic: Topic) -> Result<(), Failure> {
    for name in context.arguments.from(1).iter() {
        let session = &mut *context.session;
        if session.subscriptions.is_full() {
            return Err(Failure::Fixed("ERR too many subscriptions of this client"));
        }
        if session.subscriptions.insert(topic, name)
            && let Some(address) = session.address.clone()
        {
            context.shared.subscribers.insert(topic, name, address);
        }
        let word = if topic == Topic::Channel { "subscribe" } else { "psubscribe" };
        write(context, word, Some(name));
    }
    Ok(())
}

/// Ends the subscriptions to all arguments, or all there are; one reply for each, and at least one.
pub(super) fn unsubscribe(context: &mut Context<'_>, topic: Topic) -> Result<(), Failure> {
    let word = if topic == Topic::Channel { "unsubscribe" } else { "punsubscribe" };
    let mut names: Vec<Box<[u8]>> = context.arguments.from(1).iter().map(Box::from).collect();
    if names.is_empty() {
        names = context.session.subscriptions.names(topic).iter().cloned().collect();
        if names.is_empty() {
            write(context, word, None);
        }
    }
    for name in names {
        if context.session.subscriptions.remove(topic, &name) {
            context.shared.subscribers.remove(topic, &name, context.session.id);
        }
        write(context, word, Some(&name));
    }
    Ok(())
}

fn write(context: &mut Context<'_>, word: &str, name: Option<&[u8]>) {
    context.reply.push(3);
    context.reply.bulk(word.as_bytes());
    context.reply.optional_bulk(name);
    context.reply.count(context.session.subscriptions.len());
}
