//! insert and remove: log, then index.

use std::cell::RefCell;

use alluvium_base::KeyHash;

use super::keyspace::{Keyspace, KeyspaceShared};
use super::large::{StoredItem, count_put, is_inline, note_hidden};
use super::metadata::Metadata;
use super::shared::Shared;
use super::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::level::Version;
use crate::log::{LogStore, Position, record, store::Indexed};
use crate::planted_race::PlantedRace;

thread_local! {
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

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
        shared.acknowledge(position)
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

/// The newest item of a key as far as the log says: its segment and its offset there, if the active segment has one;
/// and the version's epoch, which shows changes that are not in the log. While both are unchanged, nobody has changed
/// the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Witness {
    newest: Newest,
    epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Newest {
    segment: u64,
    offset: Option<u32>,
}

impl Newest {
    fn of(store: &LogStore, hash: KeyHash, key: &[u8]) -> Result<Self> {
        let offset = store.find(store.shard(hash), hash, key)?.map(|(_, offset, _)| offset);
        Ok(Self { segment: store.segment.id, offset })
    }
}

impl Witness {
    /// What the log says about a key now. A value derived from what is read afterwards in the same version may be
    /// written as long as the witness holds, provided that no barrier held back updates of the key in between
    /// ([`super::update_barriers`]).
    pub fn of(version: &Version, hash: KeyHash, key: &[u8]) -> Result<Self> {
        Ok(Self { newest: Newest::of(version.active(), hash, key)?, epoch: version.epoch })
    }

    /// Whether the key has not been written since. The caller holds the lock of the key's shard in the active store,
    /// which is open, and loaded the version after it took the lock.
    ///
    /// A witness survives a freeze, but not the conversion of its segment: `false` may also mean that this cannot be
    /// determined any more.
    pub fn holds(&self, version: &Version, hash: KeyHash, key: &[u8]) -> Result<bool> {
        if version.epoch != self.epoch {
            return Ok(false);
        }
        for store in &version.log_stores {
            let found = Newest::of(store, hash, key)?;
            if found.segment == self.newest.segment {
                return Ok(found == self.newest);
            }
            if found.offset.is_some() {
                return Ok(false);
            }
        }
        Ok(false)
    }
}

/// Appends and indexes one item, which is in its stored form. With a witness, only if that holds: otherwise returns
/// `None`, and neither readers nor a recovery will ever see the item.
pub(crate) fn write_item(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    hash: KeyHash,
    item: &Item<'_>,
    witness: Option<Witness>,
) -> Result<Option<Position>> {
    RECORD.with_borrow_mut(|bytes| {
        loop {
            let segment_id;
            {
                let version = keyspace.version.load();
                let store = version.active();
                segment_id = store.segment.id;
                let item_start = record::encode_item(store.segment.seed, keyspace.id, item, bytes);
                let shard = store.shard(hash);
                let planted = shared.planted_bugs.has(PlantedRace::FindBeforeLock);
                let found_before = if planted { store.find(shard, hash, item.key)? } else { None };
                let _writer = shard.lock();
                if store.is_closed() {
                    keyspace.check_present()?;
                    continue;
                }
                let existing = if planted { found_before } else { store.find(shard, hash, item.key)? };
                if let Some(witness) = &witness
                    && !witness.holds(&keyspace.version.load(), hash, item.key)?
                {
                    return Ok(None);
                }
                // A recovery replays everything that was appended. So nothing may be appended that may still be
                // refused, by its witness or because the next segment cannot be made.
                let has_room = existing.is_some() || store.has_room(shard);
                if has_room && let Some(start) = shared.log.append(&store.segment, bytes) {
                    let offset = start as u32 + item_start as u32;
                    let slot = existing.map(|(slot, _, _)| slot);
                    let mut indexed = store.index_item(shard, hash, slot, offset)?;
                    if indexed == Indexed::Full {
                        store.index_unbounded(hash, item.key, offset)?;
                        indexed = Indexed::Done;
                    }
                    if indexed == Indexed::Done {
                        if let Some((_, _, replaced)) = &existing {
                            shared.blobs.forget_all(replaced);
                        }
                        let offset = start + bytes.len() as u64;
                        return Ok(Some(Position { segment: segment_id, offset }));
                    }
                }
            }
            // The segment or the shard's index is full.
            shared.check_refusal()?;
            shared.freeze(segment_id, item.is_tombstone())?;
        }
    })
}
