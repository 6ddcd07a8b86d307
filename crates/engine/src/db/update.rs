//! Read-modify-write: compare-and-swap and update.
//!
//! Optimistic: the value is read without holding up anybody, and the write goes through only if the log has seen no
//! write of the key since. Updates of one key additionally take turns, so that they don't retry against each other.

use std::sync::Arc;

use alluvium_io::sync::atomic::Ordering;

use super::keyspace::Keyspace;
use super::large::{StoredItem, count_put, note_hidden};
use super::metadata::{Metadata, Moment};
use super::read::View;
use super::shared::Shared;
use super::write::{Witness, check_item, check_room, write_item};
use crate::blob::StoredKey;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::log::Position;

/// What [`Keyspace::update`] shall do with the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Leave it as it is.
    Keep,
    /// Store this value, without flags and expiry.
    Insert(Vec<u8>),
    /// Store this value with flags or an expiry.
    InsertWith(Vec<u8>, Metadata),
    /// Remove it.
    Remove,
}

impl Keyspace {
    /// Atomically replaces the value of `key` by what `change` makes of it; returns the value before.
    ///
    /// `change` may be called several times when others write the key at the same time, or when the log moves on while
    /// it thinks; only the last call counts. Flags and expiry are those that it returns. Costs a get and a put.
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<&[u8]>) -> Update,
    ) -> Result<Option<Vec<u8>>> {
        let before = self.modify(key.as_ref(), |before| Ok(change(before.map(|(value, _)| value))))?;
        Ok(before.map(|(value, _)| value))
    }

    /// Like [`Keyspace::update`], for changes that look at flags and expiry, or keep them.
    pub fn update_with_metadata(
        &self,
        key: impl AsRef<[u8]>,
        mut change: impl FnMut(Option<(&[u8], Metadata)>) -> Update,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        self.modify(key.as_ref(), |before| Ok(change(before)))
    }

    /// Replaces the item of `key` by what `change` makes of it, or leaves it where `change` fails; returns the item
    /// before.
    pub(super) fn modify(
        &self,
        key: &[u8],
        mut change: impl FnMut(Option<(&[u8], Metadata)>) -> Result<Update>,
    ) -> Result<Option<(Vec<u8>, Metadata)>> {
        let shared = self.database();
        let keyspace = &*self.shared;
        shared.check_failure()?;
        keyspace.check_present()?;
        let stored_key = StoredKey::of(key);
        let hash = keyspace.hasher.hash(&stored_key);
        shared.throttle.pay(1, &*shared.clock);
        shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        let stripes = &keyspace.update_stripes;
        let stripe = &stripes[hash.low() as usize % stripes.len()];
        let turn = stripe.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (before, position) = loop {
            let version = keyspace.version.load_full();
            let witness = Witness::of(&version, hash, &stored_key)?;
            let view = View { shared, keyspace, version: &version, moment: Moment::Now(shared) };
            let found = view.find(hash, &stored_key, |view, item| view.with_metadata(key, item));
            let before = match found {
                Err(Error::MissingFile { .. }) if !Arc::ptr_eq(&version, &keyspace.version.load()) => {
                    continue;
                }
                found => found?,
            };
            let after = change(before.as_ref().map(|(value, metadata)| (&value[..], *metadata)))?;
            let item = match &after {
                Update::Keep => break (before, None),
                Update::Insert(value) => Item::value(key, value),
                Update::InsertWith(value, metadata) => metadata.item(key, value),
                Update::Remove if before.is_none() => break (before, None),
                Update::Remove => Item::tombstone(key),
            };
            check_item(&item)?;
            keyspace.check_key(key)?;
            check_room(shared, &item)?;
            let stored = StoredItem::store(shared, keyspace.id, &item)?;
            let item = stored.item();
            note_hidden(shared, keyspace, hash, &item)?;
            if let Some(position) = write_item(shared, keyspace, hash, &item, Some(witness))? {
                count_put(shared, &item);
                stored.commit();
                break (before, Some(position));
            }
        };
        drop(turn);
        match position {
            Some(position) => shared.acknowledge(position)?,
            None => acknowledge_seen(shared)?,
        }
        Ok(before)
    }

    /// Stores `new` (or removes the key, for `None`) if the value is now `expected` (or the key absent, for `None`).
    /// Returns whether it was.
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool> {
        let mut swapped = false;
        self.update(key, |current| {
            swapped = current == expected;
            match new {
                _ if !swapped => Update::Keep,
                Some(value) => Update::Insert(value.to_vec()),
                None => Update::Remove,
            }
        })?;
        Ok(swapped)
    }
}

/// Makes what was seen as durable as if this call had written it: the answer follows from it.
pub(super) fn acknowledge_seen(shared: &Shared) -> Result<()> {
    let segment = shared.log.active_segment();
    shared.acknowledge(Position { segment: segment.id, offset: segment.published() })
}
