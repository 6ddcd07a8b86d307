//! [`Subscriptions`]: what one client has subscribed to.

use std::collections::BTreeSet;

/// Maximum number of subscriptions of a client: each takes the bytes of its name twice and approximately 100 more.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 65_536;

/// What a client subscribes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// The channel of that name.
    Channel,
    /// All channels whose names match the glob-style pattern.
    Pattern,
}

/// The channels and patterns of one client.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: BTreeSet<Box<[u8]>>,
    patterns: BTreeSet<Box<[u8]>>,
    /// Bytes of all names, with those that the server takes for each.
    held_bytes: usize,
}

/// Bytes that the server takes for a name of `bytes` bytes.
fn held_bytes(bytes: usize) -> usize {
    2 * bytes + 100
}

impl Subscriptions {
    pub(crate) fn len(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    /// Bytes that the server takes for them.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= SUBSCRIPTIONS_MAX
    }

    pub(crate) fn names(&self, topic: Topic) -> &BTreeSet<Box<[u8]>> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
        }
    }

    fn names_mut(&mut self, topic: Topic) -> &mut BTreeSet<Box<[u8]>> {
        match topic {
            Topic::Channel => &mut self.channels,
            Topic::Pattern => &mut self.patterns,
        }
    }

    /// Adds a subscription; returns whether it is new.
    pub(crate) fn insert(&mut self, topic: Topic, name: &[u8]) -> bool {
        let is_new = self.names_mut(topic).insert(name.into());
        if is_new {
            self.held_bytes += held_bytes(name.len());
        }
        is_new
    }

    /// Removes a subscription; returns whether there was one.
    pub(crate) fn remove(&mut self, topic: Topic, name: &[u8]) -> bool {
        let was_there = self.names_mut(topic).remove(name);
        if was_there {
            self.held_bytes -= held_bytes(name.len());
        }
        was_there
    }
}
