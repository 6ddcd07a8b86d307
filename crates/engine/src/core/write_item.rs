//! Appends an item to the log and indexes it.

use std::cell::RefCell;

use alluvium_base::KeyHash;

use super::keyspace::KeyspaceShared;
use super::shared::Shared;
use super::witness::Witness;
use crate::error::Result;
use crate::item::Item;
use crate::log::{Position, record, store::Indexed};
use crate::planted_race::PlantedRace;

thread_local! {
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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
                let _writer = shard.lock_to_write(&shared.log.waits);
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
                let has_room = existing.is_some() || store.has_room(shard)?;
                if has_room && let Some(start) = shared.log.append(&store.segment, bytes) {
                    let offset = start as u32 + item_start as u32;
                    let slot = existing.map(|(slot, _, _)| slot);
                    let mut indexed = store.index_item(shard, hash, slot, offset, &shared.log.waits)?;
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
