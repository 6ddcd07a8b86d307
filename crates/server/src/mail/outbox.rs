//! [`Outbox`]: what a round has to tell other clients, until its commit.

use std::sync::Arc;

use super::address::Address;
use super::message::{Content, Message};
use crate::changes::{self, Change, Event};
use crate::inbox::{Inbox, MESSAGE_BYTES_MAX};
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// Messages, in their order, each with the inbox of its recipients.
#[derive(Default)]
pub(crate) struct Letters(Vec<(Arc<Inbox>, Message)>);

impl Letters {
    /// Adds a message to each worker that has some of the recipients.
    pub(crate) fn add<'a>(&mut self, content: &Content, recipients: impl IntoIterator<Item = &'a Address>) {
        let start = self.0.len();
        for Address { inbox, connection, session } in recipients {
            let recipient = (*connection, *session);
            match self.0[start..].iter_mut().find(|(other, _)| Arc::ptr_eq(other, inbox)) {
                Some((_, message)) => message.recipients.push(recipient),
                None => {
                    let message = Message { content: content.clone(), recipients: vec![recipient] };
                    self.0.push((inbox.clone(), message));
                }
            }
        }
    }

    /// Approximate number of bytes that the messages take.
    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, message)| message.bytes()).sum()
    }

    /// Hands all messages to the workers of their recipients.
    pub(crate) fn send(self) {
        for (inbox, message) in self.0 {
            inbox.deliver(message);
        }
    }
}

/// What a round's commands have published and changed, in their order. A transaction that does not take effect, or runs
/// again, takes back what it has put here.
#[derive(Default)]
pub(crate) struct Outbox {
    entries: Vec<Entry>,
    /// Of messages.
    bytes: usize,
    /// The workers for which there was no room for a message.
    overflowed: Vec<Arc<Inbox>>,
    /// Keys that were absent before the command in execution, if anybody wants to know of new keys.
    pub(crate) absent: Vec<(DatabaseNumber, Box<[u8]>)>,
    /// Keys were changed, and nobody wanted to know.
    has_unrecorded: bool,
}

enum Entry {
    Letters(Letters),
    Change(Change),
    /// All keys of some database are gone.
    Cleared(DatabaseNumber),
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Forgets all but the first `len` entries.
    pub(crate) fn truncate(&mut self, len: usize) {
        for entry in self.entries.drain(len..) {
            if let Entry::Letters(letters) = entry {
                self.bytes -= letters.bytes();
            }
        }
    }

    /// Adds a message to clients.
    pub(crate) fn tell(&mut self, content: &Content, recipients: &[Address]) {
        let mut letters = Letters::default();
        letters.add(content, recipients);
        let bytes = letters.bytes();
        if self.bytes + bytes > MESSAGE_BYTES_MAX {
            letters.0.into_iter().for_each(|(inbox, _)| self.overflow(inbox));
        } else {
            self.bytes += bytes;
            self.entries.push(Entry::Letters(letters));
        }
    }

    /// Notes that the client of the session `writer` has changed a key. Must be called after the write.
    #[inline]
    pub(crate) fn changed(
        &mut self,
        shared: &Shared,
        database: DatabaseNumber,
        writer: u64,
        key: &[u8],
        event: Event,
    ) {
        if shared.observers.get().is_empty() {
            self.has_unrecorded = true;
        } else {
            changes::record(self, shared, Change { database, key: key.into(), writer }, event);
        }
    }

    /// Notes that all keys of a database are gone.
    pub(crate) fn cleared(&mut self, database: DatabaseNumber) {
        self.entries.push(Entry::Cleared(database));
    }

    /// Keeps a change for those who want to know when it has taken effect.
    pub(crate) fn keep(&mut self, change: Change) {
        self.entries.push(Entry::Change(change));
    }

    #[cold]
    fn overflow(&mut self, inbox: Arc<Inbox>) {
        if !self.overflowed.iter().any(|other| Arc::ptr_eq(other, &inbox)) {
            self.overflowed.push(inbox);
        }
    }

    /// Adds what a later round has to tell, which is empty then.
    pub(crate) fn append(&mut self, later: &mut Self) {
        let has_room = self.bytes + later.bytes <= MESSAGE_BYTES_MAX;
        self.has_unrecorded |= std::mem::take(&mut later.has_unrecorded);
        for entry in later.entries.drain(..) {
            match entry {
                Entry::Letters(letters) if !has_room => {
                    letters.0.into_iter().for_each(|(inbox, _)| self.overflow(inbox));
                }
                entry => self.entries.push(entry),
            }
        }
        self.bytes += if has_room { later.bytes } else { 0 };
        later.bytes = 0;
        later.overflowed.drain(..).for_each(|inbox| self.overflow(inbox));
    }

    /// Tells everybody, after the commit.
    #[inline]
    pub(crate) fn send(&mut self, shared: &Shared) {
        if std::mem::take(&mut self.has_unrecorded) {
            shared.tracking.forget_all_if_just_enabled(&shared.observers, &shared.connected);
        }
        if !self.entries.is_empty() || !self.overflowed.is_empty() {
            self.send_entries(shared);
        }
    }

    fn send_entries(&mut self, shared: &Shared) {
        let mut changed = Vec::new();
        for entry in self.entries.drain(..) {
            match entry {
                Entry::Letters(letters) => letters.send(),
                Entry::Change(change) => changed.push(change),
                Entry::Cleared(database) => {
                    shared.expiries.clear(database);
                    changes::settle(shared, &std::mem::take(&mut changed));
                    shared.tracking.invalidate_all(&shared.observers, &shared.connected);
                }
            }
        }
        changes::settle(shared, &changed);
        self.bytes = 0;
        self.overflowed.drain(..).for_each(|inbox| inbox.overflow());
    }
}
