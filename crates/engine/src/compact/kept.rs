//! [`Kept`]: the items of a frozen log store that become a run. The others are dropped with the segment.
//!
//! Two rules say what may be dropped, as long as no snapshot and no iterator uses the store
//! ([decision 0058](../../../../docs/decisions/0058-what-dies-in-the-log-stays-there.md)):
//!
//! 1. *Hidden items*: a younger log store has an item of the key. Lookups stop there, and so does a recovery once the
//!    log is synced up to that item; the caller syncs it before the manifest forgets the segment.
//! 2. *Tombstones over nothing*: the tables are open, none can have the key, and the store is the oldest one of the
//!    log. No table gets older items later, except by an ingest, which raises a barrier first.

use std::sync::Arc;

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;

use crate::core::{CarriedRows, HeldMemory, KeyspaceShared, Shared};
use crate::error::Result;
use crate::item::Item;
use crate::level::Version;
use crate::log::LogStore;
use crate::planted_race::PlantedRace;

/// Number of items that are examined to find out whether it is worthwhile to examine all, and the share of them that
/// must be droppable.
const SAMPLES_MAX: usize = 128;
const DROPPED_SHARE_MIN: f64 = 1.0 / 16.0;
/// Number of items by which the prefetch runs ahead, and bytes of an item that are loaded.
const PREFETCH_AHEAD: usize = 12;
const PREFETCH_BYTES: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct Kept<'s> {
    /// The items of each shard.
    pub indexes: Vec<Arc<CuckooTable>>,
    /// Offsets of the items that are dropped.
    pub dropped: Vec<u32>,
    /// Whether some of them were hidden by younger items, which must be durable before the segment is gone.
    pub any_hidden: bool,
    _held: Option<HeldMemory<'s>>,
}

/// Why an item is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Hidden,
    OverNothing,
}

/// Knows which items may be dropped.
struct Judge<'a> {
    /// Younger stores.
    hiders: Vec<&'a LogStore>,
    tables: Tables<'a>,
}

/// What is known about the tables without a read.
enum Tables<'a> {
    /// Anything may be there.
    Unknown,
    Empty,
    /// Filters say what may be there.
    Filtered(&'a Version),
}

impl<'a> Tables<'a> {
    fn of(version: &'a Version) -> Self {
        // Under a memory limit, filters may be on the device.
        let lacks_nothing = || version.body.sections().all(|section| section.lacks() == (false, false));
        match version.body.may_have_items() {
            false => Self::Empty,
            true if lacks_nothing() => Self::Filtered(version),
            true => Self::Unknown,
        }
    }

    /// Whether no table has a key with this hash.
    fn lack(&self, hash: KeyHash) -> bool {
        match self {
            Self::Unknown => false,
            Self::Empty => true,
            // A filter that cannot be read says nothing.
            Self::Filtered(version) => matches!(version.body.lookup(hash).next_read(), Ok(None)),
        }
    }
}

impl<'s> Kept<'s> {
    /// Chooses the items of `store`, the oldest store of the log.
    pub fn of(shared: &'s Shared, keyspace: &KeyspaceShared, store: &LogStore) -> Result<Self> {
        let indexes = store.shards().iter().map(|shard| Arc::clone(&shard.index())).collect();
        let mut kept = Self { indexes, dropped: Vec::new(), any_hidden: false, _held: None };
        // Before the version is loaded: an ingest lowers its barrier when its tables can be found.
        let is_ingesting = keyspace.update_barriers.is_any_raised();
        // A close converts dormant keyspaces, too, whose versions do not show their tables.
        let shows_tables = !keyspace.is_dormant();
        let planted = shared.planted_bugs.has(PlantedRace::DropBesideSnapshots);
        let no_snapshot = (!planted).then(|| shared.freeze_lock.lock().expect("no panic while held"));
        let version = match shared.planted_bugs.has(PlantedRace::DropFromSnapshots) {
            true => Some(keyspace.version.load_full()),
            false => keyspace.only_version_with(&store.segment),
        };
        let Some(version) = version else { return Ok(kept) };
        // A snapshot that is taken from now on freezes an active store that has items, and contains it. One without
        // items is not part of it, and what is written there later must hide nothing.
        let is_younger = |other: &&LogStore| other.segment.id > store.segment.id && other.len() > 0;
        let hiders = version.log_stores.iter().map(|store| &**store).filter(is_younger).collect();
        drop(no_snapshot);
        let tables = match shows_tables && !is_ingesting {
            true => Tables::of(&version),
            false => Tables::Unknown,
        };
        let judge = Judge { hiders, tables };
        if judge.is_worthwhile(store, &kept.indexes)? {
            kept.drop_needless(shared, store, &judge)?;
        }
        Ok(kept)
    }

    /// All items of `store`.
    pub fn all_of(store: &LogStore) -> Self {
        let indexes = store.shards().iter().map(|shard| Arc::clone(&shard.index())).collect();
        Self { indexes, dropped: Vec::new(), any_hidden: false, _held: None }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.indexes.iter().map(|index| index.len()).sum()
    }

    /// Removes the rows of dropped items: a row of a large item may have been made when it was in the log. The caller
    /// has begun an era, so lookups that found older items make no row any more.
    pub fn forget_rows(&self, store: &LogStore, rows: &CarriedRows<'_>) -> Result<()> {
        for &offset in &self.dropped {
            rows.forget(store.segment.item_at(offset)?.key);
        }
        Ok(())
    }

    fn drop_needless(&mut self, shared: &'s Shared, store: &LogStore, judge: &Judge<'_>) -> Result<()> {
        // The offsets of a shard, those that are dropped, and the new indexes.
        let bytes_before = self.indexes.iter().map(|index| index.memory_bytes()).sum::<usize>();
        self._held = Some(shared.hold_items((bytes_before + 2 * store.len() * size_of::<u32>()) as u64));
        for index in &mut self.indexes {
            let offsets: Vec<u32> = index.entries().map(|(_, _, offset)| offset).collect();
            let mut needed = Vec::with_capacity(offsets.len());
            for (position, &offset) in offsets.iter().enumerate() {
                if let Some(&ahead) = offsets.get(position + PREFETCH_AHEAD) {
                    store.segment.prefetch(ahead, PREFETCH_BYTES);
                }
                match judge.reason(store, offset)? {
                    None => needed.push(offset),
                    Some(reason) => {
                        self.any_hidden |= reason == Reason::Hidden;
                        self.dropped.push(offset);
                    }
                }
            }
            if needed.len() < offsets.len() {
                *index = Arc::new(store.index_of(&needed)?);
            }
        }
        Ok(())
    }
}

impl Judge<'_> {
    /// Whether a sample of the store has enough items that can be dropped.
    fn is_worthwhile(&self, store: &LogStore, indexes: &[Arc<CuckooTable>]) -> Result<bool> {
        // Items are in the order of their hashes, so the first ones are as good as any.
        let each = SAMPLES_MAX.div_ceil(indexes.len());
        let (mut samples, mut dropped) = (0_u32, 0_u32);
        for (_, _, offset) in indexes.iter().flat_map(|index| index.entries().take(each)) {
            samples += 1;
            dropped += u32::from(self.reason(store, offset)?.is_some());
        }
        Ok(dropped > 0 && f64::from(dropped) >= DROPPED_SHARE_MIN * f64::from(samples))
    }

    /// Why the item at this offset may be dropped; `None` if it is needed.
    fn reason(&self, store: &LogStore, offset: u32) -> Result<Option<Reason>> {
        let item = store.segment.item_at(offset)?;
        // The blobs of large items are counted by the tables that refer to them.
        if item.is_reference() {
            return Ok(None);
        }
        let hash = store.hasher().hash(item.key);
        for hider in &self.hiders {
            if hider.get(hash, item.key)?.is_some() {
                return Ok(Some(Reason::Hidden));
            }
        }
        Ok(self.is_over_nothing(&item, hash).then_some(Reason::OverNothing))
    }

    fn is_over_nothing(&self, item: &Item<'_>, hash: KeyHash) -> bool {
        item.is_tombstone() && self.tables.lack(hash)
    }
}
