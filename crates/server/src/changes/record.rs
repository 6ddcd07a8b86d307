//! From a command to those who want to know.

use super::change::Change;
use super::classes::Classes;
use super::event::Event;
use crate::mail::Outbox;
use crate::shared::Shared;
use crate::store::DatabaseNumber;

/// Publishes an event in the outbox, and keeps the change there.
#[cold]
pub(crate) fn record(outbox: &mut Outbox, shared: &Shared, change: Change, event: Event) {
    let observed = shared.observers.get();
    let classes = observed.classes();
    let Change { database, key, .. } = &change;
    if event != Event::EXPIRED
        && classes.intersects(Classes::EXPIRED)
        && shared.expiries.is_due(*database, key)
    {
        // The command has found no key, or a new one.
        publish(outbox, shared, classes, *database, key, Event::EXPIRED);
    }
    let before = outbox.absent.iter().position(|(number, absent)| number == database && **absent == **key);
    if event.is_present
        && let Some(position) = before
    {
        outbox.absent.swap_remove(position);
        publish(outbox, shared, classes, *database, key, Event::NEW);
    }
    publish(outbox, shared, classes, *database, key, event);
    if observed.has_tracking() || classes.intersects(Classes::EXPIRED) {
        outbox.keep(change);
    }
}

/// Publishes that a command has asked for a key that is not there.
pub(crate) fn missed(outbox: &mut Outbox, shared: &Shared, database: DatabaseNumber, key: &[u8]) {
    publish(outbox, shared, shared.observers.get().classes(), database, key, Event::KEYMISS);
}

fn publish(
    outbox: &mut Outbox,
    shared: &Shared,
    classes: Classes,
    database: DatabaseNumber,
    key: &[u8],
    event: Event,
) {
    if !classes.intersects(event.class) {
        return;
    }
    let name = event.name.as_bytes();
    if classes.intersects(Classes::BY_KEY) {
        let channel = [format!("__keyspace@{database}__:").as_bytes(), key].concat();
        shared.subscribers.publish(&channel, name, outbox);
    }
    if classes.intersects(Classes::BY_EVENT) {
        let channel = format!("__keyevent@{database}__:{}", event.name);
        shared.subscribers.publish(channel.as_bytes(), key, outbox);
    }
}

/// Tells those who keep values that keys were changed, and notes when the keys expire, after the commit.
pub(crate) fn settle(shared: &Shared, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    for change in changes {
        note_expiry(shared, change.database, &change.key);
    }
    if shared.observers.get().has_tracking() {
        shared.tracking.invalidate(changes, &shared.connected);
    }
}

/// Notes when a key expires, so that this will be noticed.
pub(crate) fn note_expiry(shared: &Shared, database: DatabaseNumber, key: &[u8]) {
    let mut expires_at_ms = None;
    let found =
        shared.store.database(database).get_any(key, &mut |found| expires_at_ms = found.expires_at_ms);
    // If it cannot be read, its expiry will not be noticed.
    if found.is_ok() {
        shared.expiries.note(database, key, expires_at_ms);
    }
}
