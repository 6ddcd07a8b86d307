//! Appends an item to the log and indexes it.

use std::cell::RefCell;
use std::sync::Arc;

use alluvium_base::KeyHash;

use super::keyspace::KeyspaceShared;
use super::shared::Shared;
use super::witness::Witness;
use crate::chained::{Appended, Decision};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::level::Version;
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
    write_item_in(shared, keyspace, hash, item, (witness, None))
}

/// Like [`write_item`]. `is_in_second` says in which of its two chains a key is whose record is moved: that is not
/// looked up then. The witness must prove that the record is the newest of the key.
pub(crate) fn write_item_in(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    hash: KeyHash,
    item: &Item<'_>,
    (witness, is_in_second): (Option<Witness>, Option<bool>),
) -> Result<Option<Position>> {
    RECORD.with_borrow_mut(|bytes| {
        let mut decision = None;
        'again: loop {
            let segment_id;
            let undecided = 'locked: {
                let version = keyspace.version.load();
                let store = version.active();
                segment_id = store.segment.id;
                let planted_end = shared.planted_bugs.has(PlantedRace::EndNewChains);
                let item_start = match store.linked().filter(|_| !planted_end) {
                    None => record::encode_item(store.segment.seed, keyspace.id, item, bytes),
                    Some(_) => 0,
                };
                let shard = store.shard(hash);
                let planted = shared.planted_bugs.has(PlantedRace::FindBeforeLock);
                let found_before = if planted { store.find(shard, hash, item.key)? } else { None };
                let _writer = shard.lock_to_write(&shared.log.waits);
                if store.is_closed() {
                    keyspace.check_present()?;
                    continue 'again;
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
                // A clear begins other chains after it has begun the store.
                let current = store.linked().map(|_| keyspace.version.load_full());
                let appended = match current.as_ref().and_then(|current| current.chain.as_ref()) {
                    _ if !has_room => None,
                    Some(chain) => {
                        let at = existing.map(|(_, offset, _)| offset);
                        match chain.append(
                            &shared.log,
                            store,
                            (hash, item),
                            (at, is_in_second),
                            decision.as_ref(),
                        )? {
                            Appended::Done { start, len, item } => Some((start, len, item)),
                            Appended::Full => None,
                            Appended::Undecided => break 'locked current,
                        }
                    }
                    // Without chains, no reader would find the item once the store is converted.
                    None if store.linked().is_some() && !planted_end => None,
                    None => shared
                        .log
                        .append(&store.segment, bytes)
                        .map(|start| (start, bytes.len(), start as u32 + item_start as u32)),
                };
                if let Some((start, len, offset)) = appended {
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
                        let offset = start + len as u64;
                        return Ok(Some(Position { segment: segment_id, offset }));
                    }
                }
                None
            };
            if let Some(version) = undecided {
                decision = decide(shared, keyspace, &version, hash, item.key)?;
                continue;
            }
            // The segment or the shard's index is full.
            shared.check_refusal()?;
            shared.freeze(segment_id, item.is_tombstone())?;
        }
    })
}

/// Finds out in which of its chains a key is. `None` if the version is not current any more.
#[cold]
pub(crate) fn decide(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Arc<Version>,
    hash: KeyHash,
    key: &[u8],
) -> Result<Option<Decision>> {
    let Some(chain) = &version.chain else { return Ok(None) };
    match chain.decide(version, &shared.counters.lookup_page_reads, hash, key) {
        Ok(decision) => Ok(Some(decision)),
        Err(Error::MissingFile { .. }) if !Arc::ptr_eq(version, &keyspace.version.load()) => Ok(None),
        Err(error) => Err(error),
    }
}
