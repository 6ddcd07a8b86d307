//! Read-modify-write: compare-and-swap and update.
//!
//! Optimistic: the value is read without delaying other threads, and the write succeeds only if the key was not changed
//! since ([`Witness`]). Increments and the like also take turns, so that they do not force each other to retry.

use alluvium_base::KeyHash;
use alluvium_io::sync::atomic::Ordering;

use super::keyspace::Keyspace;
use super::large::{StoredItem, count_put, note_hidden};
use super::read::{View, retry_when_moved};
use super::write::{check_item, check_room};
use crate::blob::StoredKey;
use crate::core::{KeyspaceShared, Moment, Shared, Witness, write_item};
use crate::error::Result;
use crate::item::Item;
use crate::log::Position;
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;

/// What [`Keyspace::update`] does with the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Leaves it unchanged.
    Keep,
    /// Stores this value, without flags and expiry.
    Insert(Vec<u8>),
    /// Stores this value with flags or an expiry.
    InsertWith(Vec<u8>, Metadata),
    /// Removes it.
    Remove,
}

impl Keyspace {
    /// Atomically replaces the value of `key` by the result of `change`; returns the previous value.
    ///
    /// `change` is called again if the item was changed meanwhile; only the last call takes effect. No lock is held
    /// while it runs, so it may use the database, and even update other keys; a slow one is repeated as often as other
    /// threads write the key. Flags and expiry are those that it returns. Costs a get and a put. Waits for a bulk
    /// ingest into the keyspace that has not reached the key yet ([`crate::Ingest::finish`]).
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Update,
    ) -> Result<Option<Vec<u8>>> {
        let before = self.modify_freely(key.as_ref(), |before| change(before.map(|(value, _)| value)))?;
        Ok(before.map(|(value, _)| value))
    }

    /// Like [`Keyspace::update`], for changes that depend on flags and expiry, or keep them.
    pub fn update_with_metadata(
        &self,
        key: impl AsRef<[u8]>,
        change: impl FnMut(Option<(&[u8], Metadata)>) -> Update,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        self.modify_freely(key.as_ref(), change)
    }

    /// Replaces the item of `key` by the result of `change`, or leaves it unchanged if `change` fails; returns the
    /// previous item. `change` must be code of this crate: updates of the same stripe wait for it.
    pub(super) fn modify(
        &self,
        key: &[u8],
        change: impl FnMut(Option<(&[u8], Metadata)>) -> Result<Update>,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        let stored_key = StoredKey::of(key);
        let hash = self.shared.hasher.hash(&stored_key);
        let stripes = &self.shared.update_stripes;
        let stripe = &stripes[hash.low() as usize % stripes.len()];
        let turn = stripe.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (before, position) = self.exchange(key, change)?;
        drop(turn);
        self.acknowledge_exchange(position)?;
        Ok(before)
    }

    /// Like [`Keyspace::modify`], for code of users: no thread waits for it, so it may do anything, including other
    /// updates.
    fn modify_freely(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<(&[u8], Metadata)>) -> Update,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        let (before, position) = self.exchange(key, |before| Ok(change(before)))?;
        self.acknowledge_exchange(position)?;
        Ok(before)
    }

    /// Returns the previous item and, if a new one was written, its position. `change` is called again only if the item
    /// changed meanwhile: a witness that no longer holds may also mean that this cannot be determined any more.
    fn exchange(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<(&[u8], Metadata)>) -> Result<Update>,
    ) -> Result<Exchange> {
        let shared = self.database();
        let keyspace = &*self.shared;
        shared.check_refusal()?;
        keyspace.check_present()?;
        let stored_key = StoredKey::of(key);
        let hash = keyspace.hasher.hash(&stored_key);
        shared.throttle.pay(1, &*shared.clock);
        shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        let read = || {
            witnessed(shared, keyspace, hash, &stored_key, |view| {
                view.find(hash, &stored_key, |view, item| view.with_metadata(key, item))
            })
        };
        let (mut witness, mut before) = read()?;
        loop {
            let after = change(before.as_ref().map(|(value, metadata)| (&value[..], *metadata)))?;
            let item = match &after {
                Update::Keep => return Ok((before, None)),
                Update::Insert(value) => Item::value(key, value),
                Update::InsertWith(value, metadata) => metadata.item(key, value),
                Update::Remove if before.is_none() => return Ok((before, None)),
                Update::Remove => Item::tombstone(key),
            };
            check_item(&item)?;
            keyspace.check_key(key)?;
            check_room(shared, &item)?;
            let stored = StoredItem::store(shared, keyspace.id, &item)?;
            let item = stored.item();
            note_hidden(shared, keyspace, hash, &item)?;
            loop {
                let witness_kept =
                    Some(witness).filter(|_| !shared.planted_bugs.has(PlantedRace::UpdateWithoutWitness));
                if let Some(position) = write_item(shared, keyspace, hash, &item, witness_kept)? {
                    count_put(shared, &item);
                    stored.commit();
                    return Ok((before, Some(position)));
                }
                let (later, now) = read()?;
                witness = later;
                if now != before {
                    before = now;
                    break;
                }
            }
        }
    }

    fn acknowledge_exchange(&self, position: Option<Position>) -> Result<()> {
        match position {
            Some(position) => self.acknowledge(position),
            None => self.acknowledgement.give_for_seen(self.database()),
        }
    }

    /// Stores `new` (if `None`: removes the key) if the value is now `expected` (if `None`: if the key is absent).
    /// Returns whether it was.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let mut swapped = false;
        self.modify(key.as_ref(), |current| {
            swapped = current.map(|(value, _)| value) == expected;
            Ok(match new {
                _ if !swapped => Update::Keep,
                Some(value) => Update::Insert(value.to_vec()),
                None => Update::Remove,
            })
        })?;
        Ok(swapped)
    }
}

/// The previous item, and the end of the new item's record if one was written.
type Exchange = (Option<(Vec<u8>, Metadata)>, Option<Position>);

/// The result of `read` in a version, with a witness that was taken before: writing a value derived from the result is
/// safe while the witness holds. Waits while a barrier holds back updates of the key.
pub(super) fn witnessed<R>(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    hash: KeyHash,
    stored_key: &[u8],
    read: impl Fn(&View<'_>) -> Result<R>,
) -> Result<(Witness, R)> {
    loop {
        let era = shared.rows.era();
        let found = retry_when_moved(keyspace, |version| {
            // The witness is taken before the value is read, so that a write in between is noticed.
            let witness = Witness::of(version, hash, stored_key)?;
            Ok((witness, read(&View { shared, keyspace, version, moment: Moment::Now(shared), era })?))
        })?;
        // A barrier that was raised after the witness was taken, or was lowered by now, has begun another epoch.
        if !keyspace.update_barriers.wait(hash) {
            return Ok(found);
        }
    }
}
