//! insert and remove: log, then index.

use super::keyspace::Keyspace;
use super::large::{StoredItem, count_put, is_inline, note_hidden};
use crate::core::{Shared, write_item};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::metadata::Metadata;

impl Keyspace {
    /// Stores `value` under `key`, replacing an existing item. Returns when the write is as durable as the database's
    /// [`crate::Durability`] demands.
    ///
    /// Costs one append to the log, and no read, unless the key's tag equals that of another key in the log. An item of
    /// more than 2039 bytes (see [`crate::Builder::inline_bytes_max`]) is written to a blob file, once; from 16 KiB on,
    /// a page is read to find out what it replaces.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write(&Item::value(key.as_ref(), value.as_ref()))
    }

    /// Like [`Keyspace::insert`], with flags or an expiry.
    pub fn insert_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        metadata: Metadata,
    ) -> Result<()> {
        self.write(&metadata.item(key.as_ref(), value.as_ref()))
    }

    /// Removes `key`, whether or not it is present. Its space is freed when the tombstone reaches the last level.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(&Item::tombstone(key.as_ref()))
    }

    fn write(&self, item: &Item<'_>) -> Result<()> {
        let shared = self.database();
        if item.is_tombstone() {
            shared.check_refusal()?
        } else {
            shared.check_failure()?
        };
        self.shared.check_key(item.key)?;
        if !is_inline(shared, item) {
            check_item(item)?;
            check_room(shared, item)?;
            return self.write_stored(StoredItem::store(shared, self.shared.id, item)?);
        }
        if !item.is_tombstone() {
            shared.check_room()?;
        }
        let hash = self.shared.hasher.hash(item.key);
        note_hidden(shared, &self.shared, hash, item)?;
        shared.throttle.pay(1, &*shared.clock);
        let position = write_item(shared, &self.shared, hash, item, None)?.expect("an unconditional write");
        count_put(shared, item);
        self.acknowledge(position)
    }
}

/// Refuses an item for which there is no room.
pub(super) fn check_room(shared: &Shared, item: &Item<'_>) -> Result<()> {
    if item.is_tombstone() {
        return Ok(());
    }
    shared.check_failure()?;
    shared.check_room_for(blob_bytes(shared, item))
}

/// Bytes of an item that go to a blob file.
pub(super) fn blob_bytes(shared: &Shared, item: &Item<'_>) -> u64 {
    let is_stored = is_inline(shared, item) || item.is_tombstone();
    if is_stored { 0 } else { (item.key.len() + item.value.len()) as u64 }
}

/// Refuses keys and values beyond the limits.
pub(super) fn check_item(item: &Item<'_>) -> Result<()> {
    check_lengths(item.key.len(), item.value.len())
}

/// Refuses lengths of keys and values beyond the limits.
pub(super) fn check_lengths(key_len: usize, value_len: usize) -> Result<()> {
    if key_len > KEY_BYTES_MAX {
        return Err(Error::KeyTooLarge { len: key_len, max: KEY_BYTES_MAX });
    }
    if value_len > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLarge { len: value_len, max: VALUE_BYTES_MAX });
    }
    Ok(())
}
