//! Indexes the items of replayed segments by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::KeyspaceId;

use super::replay::Replayed;
use crate::core::new_log_store;
use crate::error::Result;
use crate::item::Item;
use crate::log::record::{Parsed, Record};
use crate::log::salvage::{Piece, Pieces};
use crate::log::segment::BLOCK;
use crate::log::{LogStore, Segment, Slots, record};
use crate::manifest::DatabaseState;

/// Indexes the items of a segment's records for all keyspaces to which they still belong.
pub(super) fn index(
    segment: &Arc<Segment>,
    state: &DatabaseState,
    replayed: &mut Replayed,
    check: bool,
) -> Result<()> {
    let mut indexed = Indexed { segment, state, replayed, stores: BTreeMap::new(), slots: BTreeMap::new() };
    let bytes = segment.slice(0..segment.published()).expect("published");
    let mut at = BLOCK as usize;
    while let Parsed::Record(record, len) = record::decode(segment.seed, &bytes[at.min(bytes.len())..], check)
    {
        indexed.add(&record, at)?;
        at += len;
        if matches!(record, Record::Seal { .. }) {
            break;
        }
    }
    indexed.finish();
    Ok(())
}

/// Like [`index`], for the sound records of a damaged segment, wherever they are.
pub(super) fn index_damaged(
    segment: &Arc<Segment>,
    state: &DatabaseState,
    replayed: &mut Replayed,
) -> Result<()> {
    let mut indexed = Indexed { segment, state, replayed, stores: BTreeMap::new(), slots: BTreeMap::new() };
    let bytes = segment.slice(0..segment.published()).expect("published");
    for piece in Pieces::new(segment.seed, bytes, BLOCK as usize) {
        if let Piece::Record { record, start } = piece {
            indexed.add(&record, start)?;
        }
    }
    indexed.finish();
    Ok(())
}

struct Indexed<'a> {
    segment: &'a Arc<Segment>,
    state: &'a DatabaseState,
    replayed: &'a mut Replayed,
    stores: BTreeMap<KeyspaceId, LogStore>,
    /// Slots of the regions of chained keyspaces.
    slots: BTreeMap<KeyspaceId, Slots>,
}

impl Indexed<'_> {
    fn add(&mut self, record: &Record<'_>, start: usize) -> Result<()> {
        match record {
            Record::Item { keyspace, item, item_start } => self.add_item(*keyspace, item, start + item_start),
            Record::Batch(items) => items.clone().try_for_each(|(keyspace, item, item_start)| {
                self.add_item(keyspace, &item, start + item_start)
            }),
            Record::Slots { keyspace, doubled } => {
                let slots = Slots::of_doubled(*doubled).map(|slots| (*keyspace, slots));
                self.slots.extend(slots);
                Ok(())
            }
            Record::Seal { .. } | Record::Mark(_) | Record::Unlogged { .. } => Ok(()),
        }
    }

    fn add_item(&mut self, keyspace: KeyspaceId, item: &Item<'_>, offset: usize) -> Result<()> {
        // Records of keyspaces that were dropped or cleared since are ignored.
        let owner = self.state.keyspaces.get(&keyspace).filter(|owner| owner.log_start <= self.segment.id);
        let Some(owner) = owner else { return Ok(()) };
        let store = self.stores.entry(keyspace).or_insert_with(|| {
            // As many shards as the newest run has: the best guess at the size of the keyspace.
            let bits = owner.body.runs.last().map_or(0, |run| run.shard_bits);
            let items = owner.body.plan.plan.sharding.items_for_shards(1 << bits);
            let store = new_log_store(
                &owner.body.plan.plan,
                owner.hasher,
                self.segment.clone(),
                items,
                0,
                (u64::MAX, false),
            );
            match self.slots.get(&keyspace) {
                Some(&slots) => store.with_links(slots),
                None => store,
            }
        });
        let hash = owner.hasher.hash(item.key);
        self.replayed.references.add(item);
        if let Some(replaced) = store.index_unbounded(hash, item.key, offset as u32)? {
            self.replayed.references.remove(&replaced);
        }
        Ok(())
    }

    fn finish(self) {
        for (keyspace, store) in self.stores {
            store.close();
            self.replayed.stores.entry(keyspace).or_default().push(Arc::new(store));
        }
    }
}
