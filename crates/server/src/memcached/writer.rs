//! [`Writer`]: writes of memcached clients, with what other clients hear about them.

use super::DATABASE;
use crate::changes::Event;
use crate::mail::Outbox;
use crate::shared::Shared;
use crate::store::{Attributes, Change, Found, StoreError};

/// What requests write with.
pub(crate) struct Writer<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) outbox: &'a mut Outbox,
    /// The session of the client.
    pub(crate) session: u64,
}

impl Writer<'_> {
    /// Sets the value of a key without reading it.
    pub(super) fn insert(
        &mut self,
        key: &[u8],
        value: &[u8],
        attributes: Attributes,
    ) -> Result<(), StoreError> {
        self.shared.store.database(DATABASE).insert_with(key, value, attributes)?;
        self.inserted(key, Event::SET, attributes.expires_at_ms);
        Ok(())
    }

    /// Lets `change` decide about the item under a key. `inserted` is what happens to the key if it gets a value.
    pub(super) fn update(
        &mut self,
        key: &[u8],
        inserted: Event,
        change: &mut dyn FnMut(Option<Found<'_>>) -> Change,
    ) -> Result<(), StoreError> {
        let (mut event, mut expiry) = (None, None);
        self.shared.store.database(DATABASE).update_any(key, &mut |found| {
            let change = change(found);
            expiry = None;
            event = match &change {
                Change::Keep => None,
                Change::Remove => found.is_some().then_some(Event::DEL),
                Change::Expire(_) => found.is_some().then_some(Event::EXPIRE),
                Change::InsertWith(_, attributes) | Change::InsertMarked(_, attributes, _) => {
                    expiry = attributes.expires_at_ms;
                    Some(inserted)
                }
                Change::Insert(..) | Change::InsertKind(..) => Some(inserted),
            };
            change
        })?;
        if let Some(event) = event {
            self.inserted(key, event, expiry);
        }
        Ok(())
    }

    /// Removes all items.
    pub(super) fn clear(&mut self) -> Result<(), StoreError> {
        self.shared.store.database(DATABASE).clear()?;
        self.outbox.cleared(DATABASE);
        Ok(())
    }

    /// Notes an event, and that of the expiry which comes with a new value, as after `SET` with `EX`.
    fn inserted(&mut self, key: &[u8], event: Event, expires_at_ms: Option<u64>) {
        self.outbox.changed(self.shared, DATABASE, self.session, key, event);
        if event == Event::SET && expires_at_ms.is_some() {
            self.outbox.changed(self.shared, DATABASE, self.session, key, Event::EXPIRE);
        }
    }
}
