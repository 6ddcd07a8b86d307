//! [`Subscribers`]: who has subscribed to what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::subscriptions::{Subscriptions, Topic};
use crate::glob;
use crate::mail::{Address, Content, Outbox};

type Names = BTreeMap<Arc<[u8]>, Vec<Address>>;

/// The subscribers of all channels and patterns. One that has none has no entry.
#[derive(Default)]
pub(crate) struct Subscribers {
    channels: RwLock<Names>,
    patterns: RwLock<Names>,
    /// Number of channels and patterns: a publisher without subscribers takes no lock.
    len: AtomicUsize,
}

impl Subscribers {
    fn names(&self, topic: Topic) -> &RwLock<Names> {
        match topic {
            Topic::Channel => &self.channels,
            Topic::Pattern => &self.patterns,
        }
    }

    fn read(&self, topic: Topic) -> RwLockReadGuard<'_, Names> {
        self.names(topic).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, topic: Topic) -> RwLockWriteGuard<'_, Names> {
        self.names(topic).write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a subscription that the client did not have.
    pub(crate) fn insert(&self, topic: Topic, name: &[u8], address: Address) {
        let mut names = self.write(topic);
        match names.get_mut(name) {
            Some(subscribers) => subscribers.push(address),
            None => {
                names.insert(name.into(), vec![address]);
                self.len.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// Removes a subscription.
    pub(crate) fn remove(&self, topic: Topic, name: &[u8], session: u64) {
        let mut names = self.write(topic);
        let Some(subscribers) = names.get_mut(name) else { return };
        subscribers.retain(|address| address.session != session);
        if subscribers.is_empty() {
            names.remove(name);
            self.len.fetch_sub(1, Ordering::Release);
        }
    }

    /// Removes all subscriptions of a client that leaves.
    pub(crate) fn remove_all(&self, subscriptions: &Subscriptions, session: u64) {
        for topic in [Topic::Channel, Topic::Pattern] {
            subscriptions.names(topic).iter().for_each(|name| self.remove(topic, name, session));
        }
    }

    /// Puts the message into the outbox for all subscribers of its channel, those of patterns last. Returns how many
    /// there are.
    pub(crate) fn publish(&self, channel: &[u8], payload: &[u8], outbox: &mut Outbox) -> usize {
        if self.len.load(Ordering::Acquire) == 0 {
            return 0;
        }
        let (name, payload): (Arc<[u8]>, Arc<[u8]>) = (channel.into(), payload.into());
        let publication = |pattern: Option<&Arc<[u8]>>| Content::Publication {
            channel: name.clone(),
            pattern: pattern.cloned(),
            payload: payload.clone(),
        };
        let mut receivers = 0;
        if let Some(subscribers) = self.read(Topic::Channel).get(channel) {
            receivers += subscribers.len();
            outbox.tell(&publication(None), subscribers);
        }
        for (pattern, subscribers) in &*self.read(Topic::Pattern) {
            if glob::matches(pattern, channel, false) {
                receivers += subscribers.len();
                outbox.tell(&publication(Some(pattern)), subscribers);
            }
        }
        receivers
    }

    /// The channels with subscribers whose names match, in the order of their bytes.
    pub(crate) fn channels(&self, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let names = self.read(Topic::Channel);
        let matches = |name: &[u8]| pattern.is_none_or(|pattern| glob::matches(pattern, name, false));
        names.keys().filter(|name| matches(name)).cloned().collect()
    }

    /// The sessions with a subscription to something for which `is_meant` holds.
    pub(crate) fn sessions_where(&self, is_meant: impl Fn(Topic, &[u8]) -> bool) -> BTreeSet<u64> {
        let mut sessions = BTreeSet::new();
        for topic in [Topic::Channel, Topic::Pattern] {
            for (name, subscribers) in &*self.read(topic) {
                if is_meant(topic, name) {
                    sessions.extend(subscribers.iter().map(|address| address.session));
                }
            }
        }
        sessions
    }

    /// Number of clients that have subscribed to a channel by its name.
    pub(crate) fn count(&self, channel: &[u8]) -> usize {
        self.read(Topic::Channel).get(channel).map_or(0, Vec::len)
    }

    /// Number of patterns with subscribers.
    pub(crate) fn patterns(&self) -> usize {
        self.read(Topic::Pattern).len()
    }
}
