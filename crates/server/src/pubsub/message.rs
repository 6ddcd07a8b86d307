//! [`Message`]: what was published, on its way to subscribers.

use std::sync::Arc;

use alluvium_protocol::Reply;

use super::subscribers::Address;
use super::subscriptions::Topic;
use crate::inbox::Inbox;

/// A message for some clients of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) channel: Arc<[u8]>,
    /// The pattern because of which the clients get it.
    pub(crate) pattern: Option<Arc<[u8]>>,
    pub(crate) payload: Arc<[u8]>,
    /// Number of the connection at the worker, and of its session.
    pub(crate) recipients: Vec<(usize, u64)>,
}

impl Message {
    /// The kind and the name of the subscription because of which the clients get it.
    pub(crate) fn subscription(&self) -> (Topic, &[u8]) {
        match &self.pattern {
            Some(pattern) => (Topic::Pattern, pattern),
            None => (Topic::Channel, &self.channel),
        }
    }

    /// Approximate number of bytes that it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.channel.len() + self.payload.len();
        size_of::<Self>() + texts + self.recipients.len() * size_of::<(usize, u64)>()
    }

    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        match &self.pattern {
            Some(pattern) => {
                reply.push(4);
                reply.bulk(b"pmessage");
                reply.bulk(pattern);
            }
            None => {
                reply.push(3);
                reply.bulk(b"message");
            }
        }
        reply.bulk(&self.channel);
        reply.bulk(&self.payload);
    }
}

/// Messages that a worker's clients have published in this round, in their order.
#[derive(Default)]
pub(crate) struct Outbox(Vec<(Arc<Inbox>, Message)>);

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets all messages but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Adds a message to each worker that has some of the subscribers.
    pub(crate) fn add(
        &mut self,
        channel: &Arc<[u8]>,
        pattern: Option<&Arc<[u8]>>,
        payload: &Arc<[u8]>,
        subscribers: &[Address],
    ) {
        let start = self.0.len();
        for Address { inbox, connection, session } in subscribers {
            let recipient = (*connection, *session);
            match self.0[start..].iter_mut().find(|(other, _)| Arc::ptr_eq(other, inbox)) {
                Some((_, message)) => message.recipients.push(recipient),
                None => {
                    let message = Message {
                        channel: channel.clone(),
                        pattern: pattern.cloned(),
                        payload: payload.clone(),
                        recipients: vec![recipient],
                    };
                    self.0.push((inbox.clone(), message));
                }
            }
        }
    }

    /// Hands all messages to the workers of their subscribers.
    pub(crate) fn send(&mut self) {
        for (inbox, message) in self.0.drain(..) {
            inbox.publish(message);
        }
    }
}
