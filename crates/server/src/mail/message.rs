//! [`Message`]: what clients are told without having asked, on its way to them.

use std::sync::Arc;

use alluvium_protocol::{Reply, Version};

use crate::pubsub::Topic;
use crate::session::Session;

/// The channel of invalidations for clients that speak RESP2.
const INVALIDATIONS: &[u8] = b"__redis__:invalidate";

/// A message for some clients of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) content: Content,
    /// Number of the connection at the worker, and of its session.
    pub(crate) recipients: Vec<(usize, u64)>,
}

/// What a message says.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// What was published on a channel.
    Publication {
        channel: Arc<[u8]>,
        /// The pattern because of which the clients get it.
        pattern: Option<Arc<[u8]>>,
        payload: Arc<[u8]>,
    },
    /// A command that was executed, for clients that monitor the server.
    Trace(Arc<str>),
    /// Keys whose values a client must not use any more.
    Invalidation {
        /// `None` for all keys.
        keys: Option<Arc<[Arc<[u8]>]>>,
        /// Whether another client has read the keys, and lets this one be told.
        is_redirected: bool,
    },
    /// The client of this number is gone, which was to be told about invalid keys.
    RedirectionLost(u64),
}

impl Message {
    /// Approximate number of bytes that it takes while it waits.
    pub(crate) fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Publication { channel, payload, .. } => channel.len() + payload.len(),
            Content::Trace(line) => line.len(),
            Content::Invalidation { keys, .. } => {
                keys.iter().flat_map(|keys| keys.iter()).map(|key| key.len() + size_of::<Arc<[u8]>>()).sum()
            }
            Content::RedirectionLost(_) => 0,
        };
        size_of::<Self>() + content + self.recipients.len() * size_of::<(usize, u64)>()
    }

    /// Whether the client is to be told: it may have lost interest since the message was sent.
    pub(crate) fn concerns(&self, session: &Session) -> bool {
        let is_resp3 = session.version == Version::Resp3;
        match &self.content {
            Content::Publication { pattern: Some(pattern), .. } => {
                session.subscriptions.names(Topic::Pattern).contains(&**pattern)
            }
            Content::Publication { channel, .. } => {
                session.subscriptions.names(Topic::Channel).contains(&**channel)
            }
            Content::Trace(_) => session.is_monitor,
            Content::Invalidation { is_redirected: true, .. } => {
                is_resp3 || !session.subscriptions.is_empty()
            }
            Content::Invalidation { .. } | Content::RedirectionLost(_) => {
                is_resp3 && session.tracking.is_some()
            }
        }
    }

    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        match &self.content {
            Content::Publication { channel, pattern, payload } => {
                match pattern {
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
                reply.bulk(channel);
                reply.bulk(payload);
            }
            Content::Trace(line) => reply.simple(&**line),
            Content::Invalidation { keys, .. } => {
                match reply.version() {
                    Version::Resp3 => {
                        reply.push(2);
                        reply.bulk(b"invalidate");
                    }
                    Version::Resp2 => {
                        reply.push(3);
                        reply.bulk(b"message");
                        reply.bulk(INVALIDATIONS);
                    }
                }
                match keys {
                    Some(keys) => {
                        reply.array(keys.len());
                        keys.iter().for_each(|key| reply.bulk(key));
                    }
                    None => reply.null(),
                }
            }
            Content::RedirectionLost(client) => {
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.integer(*client as i64);
            }
        }
    }
}
