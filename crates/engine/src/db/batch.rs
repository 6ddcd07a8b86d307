//! [`Batch`]: writes that take effect together or not at all.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use alluvium_base::{KeyHash, KeyspaceId, SegmentId};

use super::acknowledgement::Acknowledgement;
use super::close::Handle;
use super::condition::Precondition;
use super::keyspace::Keyspace;
use super::large::{StoredItem, count_put, note_hidden};
use super::write::{blob_bytes, check_item};
use crate::chained::{BatchItem, BatchRegions, Decision, LINKED_EXTRA_BYTES_MAX, Locked};
use crate::core::{KeyspaceShared, Witness, decide};
use crate::error::{Error, Result};
use crate::item::{Item, ItemKind};
use crate::level::Version;
use crate::log::{Position, record};
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;

/// Writes to any keyspaces of one database, collected in memory until [`Batch::commit`].
///
/// A client that has read one of them reads all, and after a crash all of them are there or none. Together they must
/// fit in one log segment. [`Batch::require`] makes them depend on the current items.
#[derive(Debug)]
pub struct Batch {
    pub(super) handle: Arc<Handle>,
    pub(super) acknowledgement: Acknowledgement,
    writes: Vec<Write>,
    /// Keys that must not have been written since they were read.
    pub(super) guards: Vec<Guard>,
    pub(super) conditions: Vec<Precondition>,
}

/// A key that was read, and what the log said about it then.
#[derive(Debug)]
pub(super) struct Guard {
    pub keyspace: Arc<KeyspaceShared>,
    pub hash: KeyHash,
    /// In its stored form.
    pub key: Vec<u8>,
    pub witness: Witness,
}

#[derive(Debug)]
struct Write {
    keyspace: Arc<KeyspaceShared>,
    kind: ItemKind,
    metadata: Metadata,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl Write {
    fn item(&self) -> Item<'_> {
        match self.kind {
            ItemKind::Tombstone => Item::tombstone(&self.key),
            _ => self.metadata.item(&self.key, &self.value),
        }
    }
}

impl Batch {
    pub(super) fn new(handle: Arc<Handle>, acknowledgement: Acknowledgement) -> Self {
        let (writes, guards, conditions) = (Vec::new(), Vec::new(), Vec::new());
        Self { handle, acknowledgement, writes, guards, conditions }
    }

    /// Stores `value` under `key`. A later write of the same key in the batch replaces this one.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) {
        self.insert_with(keyspace, key, value, Metadata::default());
    }

    /// Like [`Batch::insert`], with flags or an expiry.
    pub fn insert_with(
        &mut self,
        keyspace: &Keyspace,
        key: impl Into<Vec<u8>>,
        value: impl Into<Vec<u8>>,
        metadata: Metadata,
    ) {
        let kind = ItemKind::Value;
        self.push(
            keyspace,
            Write { keyspace: keyspace.shared.clone(), kind, metadata, key: key.into(), value: value.into() },
        );
    }

    /// Removes `key`.
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl Into<Vec<u8>>) {
        let (kind, metadata) = (ItemKind::Tombstone, Metadata::default());
        self.push(
            keyspace,
            Write { keyspace: keyspace.shared.clone(), kind, metadata, key: key.into(), value: Vec::new() },
        );
    }

    fn push(&mut self, keyspace: &Keyspace, write: Write) {
        assert!(Arc::ptr_eq(&self.handle, &keyspace.handle), "the keyspace belongs to another database");
        self.writes.push(write);
    }

    /// Number of writes collected.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Performs the writes if all conditions hold. Returns when they are as durable as the database's
    /// [`crate::Durability`] demands.
    ///
    /// # Errors
    /// [`Error::ConditionFailed`] if a condition of [`Batch::require`] does not hold. Then nothing is written.
    pub fn commit(mut self) -> Result<()> {
        self.drop_overwritten();
        let shared = &self.handle.shared;
        shared.check_open()?;
        if self.writes.is_empty() && self.conditions.is_empty() {
            return Ok(());
        }
        shared.check_refusal()?;
        let mut guards = self.check_conditions()?;
        let prepared = self.prepare()?;
        loop {
            if let Some(position) = self.apply(&guards, &prepared)? {
                prepared.commit();
                return self.acknowledgement.give(shared, position);
            }
            // Another thread wrote a key that has a condition. The conditions are checked again with the new value,
            // once that thread has finished.
            alluvium_io::sync::thread::yield_now();
            guards = self.check_conditions()?;
        }
    }

    /// Performs the writes if no guarded key was written since; otherwise does nothing and returns `false`.
    pub(super) fn commit_guarded(mut self) -> Result<bool> {
        self.drop_overwritten();
        let shared = &self.handle.shared;
        shared.check_open()?;
        if self.writes.is_empty() && self.guards.is_empty() {
            return Ok(true);
        }
        shared.check_refusal()?;
        let prepared = self.prepare()?;
        let Some(position) = self.apply(&self.guards, &prepared)? else { return Ok(false) };
        prepared.commit();
        self.acknowledgement.give(shared, position).map(|()| true)
    }

    /// Drops writes that later ones of the same key replace: no reader may see them.
    fn drop_overwritten(&mut self) {
        if self.writes.len() < 2 {
            return;
        }
        let mut later = HashSet::with_capacity(self.writes.len());
        let is_last: Vec<bool> =
            self.writes.iter().rev().map(|write| later.insert((write.keyspace.id, &write.key[..]))).collect();
        drop(later);
        let mut is_last = is_last.into_iter().rev();
        self.writes.retain(|_| is_last.next().expect("one for each write"));
    }

    /// Checks the writes, and stores their large values.
    fn prepare(&self) -> Result<Prepared<'_>> {
        let shared = &self.handle.shared;
        for write in &self.writes {
            check_item(&write.item())?;
            write.keyspace.check_key(&write.key)?;
        }
        if self.writes.iter().any(|write| write.kind != ItemKind::Tombstone) {
            shared.check_failure()?;
            let bytes = self.writes.iter().map(|write| blob_bytes(shared, &write.item())).sum();
            shared.check_room_for(bytes)?;
        }
        shared.throttle.pay(self.writes.len() as u64, &*shared.clock);
        let (len, mut prepared) = (self.writes.len(), Prepared::default());
        prepared.stored.reserve_exact(len);
        prepared.hashes.reserve_exact(len);
        for write in &self.writes {
            let stored = StoredItem::store(shared, write.keyspace.id, &write.item())?;
            let hash = write.keyspace.hasher.hash(stored.item().key);
            note_hidden(shared, &write.keyspace, hash, &stored.item())?;
            prepared.stored.push(stored);
            prepared.hashes.push(hash);
        }
        Ok(prepared)
    }

    /// Appends the writes if all of `guards` hold; otherwise does nothing and returns `None`.
    fn apply(&self, guards: &[Guard], prepared: &Prepared<'_>) -> Result<Option<Position>> {
        let shared = &self.handle.shared;
        let items: Vec<Item<'_>> = prepared.stored.iter().map(StoredItem::item).collect();
        let mut decisions = BTreeMap::new();
        loop {
            match self.try_commit(guards, &prepared.hashes, &items, &decisions)? {
                Attempt::Done(position) => return Ok(Some(position)),
                Attempt::Conflict => return Ok(None),
                Attempt::Closed => {}
                Attempt::Undecided { number, version } => {
                    let (keyspace, hash) = (&self.writes[number].keyspace, prepared.hashes[number]);
                    let decision = decide(shared, keyspace, &version, hash, items[number].key)?;
                    decisions.extend(decision.map(|decision| (number, decision)));
                }
                Attempt::Full { segment } => {
                    shared.check_refusal()?;
                    shared.freeze(segment, items.iter().all(|item| item.is_tombstone()))?;
                }
            }
        }
    }

    fn try_commit(
        &self,
        guards: &[Guard],
        hashes: &[KeyHash],
        items: &[Item<'_>],
        decisions: &BTreeMap<usize, Decision>,
    ) -> Result<Attempt> {
        let shared = &self.handle.shared;
        // Keyspaces in ascending order, as the lock order demands.
        let written = self.writes.iter().map(|write| &write.keyspace);
        let mut keyspaces: Vec<&Arc<KeyspaceShared>> = Vec::new();
        for keyspace in written.chain(guards.iter().map(|guard| &guard.keyspace)) {
            // Neighbours are mostly of one keyspace, and batches may be long.
            if keyspaces.last().is_none_or(|last| last.id != keyspace.id) {
                keyspaces.push(keyspace);
            }
        }
        keyspaces.sort_by_key(|keyspace| keyspace.id);
        keyspaces.dedup_by_key(|keyspace| keyspace.id);
        let versions: Vec<Arc<Version>> = keyspaces.iter().map(|k| k.version.load_full()).collect();
        let version_of = |keyspace: KeyspaceId| {
            let at = keyspaces.binary_search_by_key(&keyspace, |k| k.id).expect("collected above");
            &versions[at]
        };
        let store_in = |keyspace: KeyspaceId| version_of(keyspace).active();
        let store_of = |write: &Write| store_in(write.keyspace.id);
        let written = self.writes.iter().zip(hashes).map(|(write, &hash)| (write.keyspace.id, hash));
        let guarded = guards.iter().map(|guard| (guard.keyspace.id, guard.hash));
        let mut shards: Vec<(KeyspaceId, u64)> = written
            .chain(guarded)
            .map(|(keyspace, hash)| (keyspace, store_in(keyspace).shard_number(hash)))
            .collect();
        shards.sort_unstable();
        shards.dedup();
        shards.shrink_to_fit();
        let mut writers: Vec<_> = shards
            .iter()
            .map(|&(keyspace, shard)| store_in(keyspace).shards()[shard as usize].lock())
            .collect();
        if shared.planted_bugs.has(PlantedRace::BatchLocksOneAtATime) {
            writers.clear();
        }
        if versions.iter().any(|version| version.active().is_closed()) {
            keyspaces.iter().try_for_each(|keyspace| keyspace.check_present())?;
            return Ok(Attempt::Closed);
        }
        let segment = &versions[0].active().segment;
        if versions.iter().any(|version| version.active().segment.id != segment.id) {
            // A freeze is in progress between the two loads.
            return Ok(Attempt::Closed);
        }
        for guard in guards {
            let version = guard.keyspace.version.load();
            let has_guards = !shared.planted_bugs.has(PlantedRace::TransactionWithoutGuards);
            if has_guards && !guard.witness.holds(&version, guard.hash, &guard.key)? {
                return Ok(Attempt::Conflict);
            }
        }
        if self.writes.is_empty() {
            let offset = segment.published();
            return Ok(Attempt::Done(Position { segment: segment.id, offset }));
        }
        for (write, &hash) in self.writes.iter().zip(hashes) {
            let store = store_of(write);
            if !store.has_room(store.shard(hash))? {
                return Ok(Attempt::Full { segment: segment.id });
            }
        }
        let is_linked = versions.iter().any(|version| version.active().linked().is_some());
        // A clear begins other chains after it has begun the store.
        let current: Vec<Arc<Version>> = match is_linked {
            true => keyspaces.iter().map(|keyspace| keyspace.version.load_full()).collect(),
            false => Vec::new(),
        };
        let current_of = |keyspace: KeyspaceId| {
            let at = keyspaces.binary_search_by_key(&keyspace, |k| k.id).expect("collected above");
            &current[at]
        };
        let written = self.writes.iter().zip(items).zip(hashes).filter(|_| is_linked);
        let chained: Vec<BatchItem<'_>> = written
            .map(|((write, &item), &hash)| {
                let (keyspace, store) = (write.keyspace.id, store_of(write));
                let chain = current_of(keyspace).chain.as_deref().filter(|_| store.linked().is_some());
                let chained = chain.map(|chain| (chain, &**store));
                BatchItem { keyspace, item, hash, chained }
            })
            .collect();
        let has_links = |item: &BatchItem<'_>| store_in(item.keyspace).linked().is_some();
        if chained.iter().any(|item| item.chained.is_none() && has_links(item))
            && !shared.planted_bugs.has(PlantedRace::EndNewChains)
        {
            // Without chains, no reader would find the item once the store is converted.
            return Ok(Attempt::Full { segment: segment.id });
        }
        let max = shared.log.record_bytes_max() as usize;
        let mut starts = Vec::new();
        // Held until the whole batch is indexed.
        let mut regions = None;
        let (appended, len) = if chained.iter().any(|item| item.chained.is_some()) {
            let regions = match BatchRegions::lock(&shared.log, &chained, decisions)? {
                Locked::Done(locked) => regions.insert(locked),
                Locked::Full => return Ok(Attempt::Full { segment: segment.id }),
                Locked::Undecided(number) => {
                    let version = current_of(self.writes[number].keyspace.id).clone();
                    return Ok(Attempt::Undecided { number, version });
                }
            };
            let len = regions.record_len(segment, &chained);
            let max = max.saturating_sub(LINKED_EXTRA_BYTES_MAX);
            if len > max {
                return Err(Error::BatchTooLarge { len, max });
            }
            let appended = shared.log.append_linked(segment, len, |start| {
                let (bytes, found) = regions.encode(segment, &chained, start);
                starts = found;
                bytes
            });
            (appended, len)
        } else {
            let mut bytes = Vec::new();
            let tagged = self.writes.iter().zip(items).map(|(write, item)| (write.keyspace.id, *item));
            starts = record::encode_batch(segment.seed, tagged, &mut bytes);
            if bytes.len() > max {
                return Err(Error::BatchTooLarge { len: bytes.len(), max });
            }
            (shared.log.append(segment, &bytes), bytes.len())
        };
        let Some(start) = appended else {
            return Ok(Attempt::Full { segment: segment.id });
        };
        let _indexed = (items.len() > 1).then(|| segment.indexing.begin(start..start + len as u64));
        for (((write, item), &hash), item_start) in self.writes.iter().zip(items).zip(hashes).zip(starts) {
            // Once begun, a batch is indexed to its end, even beyond the plan's bound: a conversion in between would
            // make a part of it durable before the rest.
            let offset = start as u32 + item_start as u32;
            let replaced = store_of(write).index_unbounded(hash, item.key, offset)?;
            if let Some(replaced) = replaced {
                shared.blobs.forget_all(&replaced);
            }
            count_put(shared, item);
        }
        drop(regions);
        Ok(Attempt::Done(Position { segment: segment.id, offset: start + len as u64 }))
    }
}

/// The writes of a batch in stored form. Their large values are garbage unless the batch is committed.
#[derive(Debug, Default)]
struct Prepared<'a> {
    stored: Vec<StoredItem<'a>>,
    hashes: Vec<KeyHash>,
}

impl Prepared<'_> {
    fn commit(self) {
        self.stored.into_iter().for_each(StoredItem::commit);
    }
}

enum Attempt {
    Done(Position),
    /// A guarded key was written since it was read.
    Conflict,
    /// The log continued in another segment meanwhile.
    Closed,
    /// Nobody knows in which of its chains the item of this number is.
    Undecided {
        number: usize,
        version: Arc<Version>,
    },
    /// The segment or an index is full: freeze this segment first.
    Full {
        segment: SegmentId,
    },
}
