//! [`LogStore`] (SILT §3.1): one keyspace's items in one segment, indexed by a cuckoo table per shard.

use std::ops::RangeInclusive;
use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, KeyHasher};
use alluvium_index::cuckoo::{CuckooTable, Slot};
use alluvium_io::sync::ArcSwap;
use alluvium_io::sync::atomic::{AtomicBool, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};

use super::entry_bound::EntryBound;
use super::linked_store::{LinkedStore, Slots};
use super::prefix_list::PrefixList;
use super::segment::Segment;
use super::waits::LogWaits;
use crate::blob::ReferenceCounts;
use crate::error::Result;
use crate::item::Item;

/// Initial entries of a shard's index. It grows up to the plan's bound, so that small keyspaces stay small.
const ENTRIES_MIN: usize = 64;
/// Entries of a shard's index before its first item: many keyspaces write nothing between two freezes.
const ENTRIES_AT_FIRST: usize = 4;
/// Number of items that are examined when a shard is full, and the share of tombstones among them from which on items
/// seem to live for a short time. Each item of a queue is followed by its tombstone.
const SAMPLES_MAX: usize = 256;
const TOMBSTONE_SHARE_MIN: f64 = 1.0 / 3.0;
/// Bytes of a segment from which on it freezes when an index is full, however short items live.
const GROWN_BYTES_MAX: u64 = 32 << 20;

/// One keyspace's items in one segment.
///
/// Readers take no lock. A writer holds the lock of the shard to which it writes. The store is *open* while its segment
/// is the log's active one. It is closed with all shard locks held, so a writer that holds a shard's lock and finds the
/// store open may append to the segment.
#[derive(Debug)]
pub(crate) struct LogStore {
    pub segment: Arc<Segment>,
    /// How keys become hashes. Shards and the index use the placing bits of a hash.
    hasher: KeyHasher,
    shard_bits: u32,
    entries_max: EntryBound,
    shards: Box<[Shard]>,
    closed: AtomicBool,
    /// Whether the items' records have links, as those of a chained keyspace.
    linked: Option<LinkedStore>,
}

#[derive(Debug)]
pub(crate) struct Shard {
    writer: Mutex<()>,
    index: ArcSwap<CuckooTable>,
    /// Used in semi-sorted keyspaces only.
    prefixes: Mutex<PrefixList>,
}

/// The outcome of [`LogStore::index_item`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    /// The item can be found from now on.
    Done,
    /// The index is full and at its bound: the log must freeze, and the item must be written again.
    Full,
}

impl LogStore {
    /// An empty store. `entries_hint` is the expected number of entries per shard.
    pub fn new(
        segment: Arc<Segment>,
        hasher: KeyHasher,
        shard_bits: u32,
        entries_max: EntryBound,
        entries_hint: usize,
    ) -> Self {
        let entries = match entries_hint {
            0 => ENTRIES_AT_FIRST,
            hint => hint.clamp(ENTRIES_MIN, entries_max.planned().max(ENTRIES_MIN)),
        };
        let shards = (0..1usize << shard_bits)
            .map(|_| Shard {
                writer: Mutex::new(()),
                index: ArcSwap::from_pointee(CuckooTable::with_entries(entries)),
                prefixes: Mutex::default(),
            })
            .collect();
        Self {
            segment,
            hasher,
            shard_bits,
            entries_max,
            shards,
            closed: AtomicBool::new(false),
            linked: None,
        }
    }

    /// The same for a chained keyspace with these slots.
    pub fn with_links(self, slots: Slots) -> Self {
        Self { linked: Some(LinkedStore::new(slots)), ..self }
    }

    /// What a log store of a chained keyspace has.
    pub fn linked(&self) -> Option<&LinkedStore> {
        self.linked.as_ref()
    }

    /// Maximum entries of a shard, after which the log must freeze.
    pub fn entries_max(&self) -> &EntryBound {
        &self.entries_max
    }

    /// Whether the shard's index has room for another entry within its bound, as far as its count tells. Where items
    /// live for a short time, a bound that is reached is raised.
    #[inline]
    pub fn has_room(&self, shard: &Shard) -> Result<bool> {
        let (len, bound) = (shard.index.load().len(), self.entries_max.now());
        Ok(len < bound || self.has_more_room(shard, bound)?)
    }

    #[cold]
    fn has_more_room(&self, shard: &Shard, bound: usize) -> Result<bool> {
        if !self.entries_max.may_rise() || self.segment.published() >= GROWN_BYTES_MAX {
            return Ok(false);
        }
        let (mut samples, mut tombstones) = (0_u32, 0_u32);
        let indexes: Vec<_> = self.shards.iter().map(Shard::index).collect();
        // They are in the order of their hashes, so the first ones are as good as any.
        let each = SAMPLES_MAX.div_ceil(indexes.len());
        for (_, _, offset) in indexes.iter().flat_map(|index| index.entries().take(each)) {
            samples += 1;
            tombstones += u32::from(self.segment.item_at(offset)?.is_tombstone());
        }
        let is_short_lived = f64::from(tombstones) >= TOMBSTONE_SHARE_MIN * f64::from(samples);
        if is_short_lived {
            self.entries_max.raise(bound);
        }
        Ok(is_short_lived && shard.index.load().len() < self.entries_max.now())
    }

    pub fn shard_bits(&self) -> u32 {
        self.shard_bits
    }

    #[inline]
    pub fn shard(&self, hash: KeyHash) -> &Shard {
        &self.shards[self.shard_number(hash) as usize]
    }

    /// The number of the shard for keys of this hash.
    #[inline]
    pub fn shard_number(&self, hash: KeyHash) -> u64 {
        self.hasher.placing(hash).prefix(self.shard_bits)
    }

    /// How keys of the store become hashes.
    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// Whether the segment takes no more records.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Closes the store. The caller holds all shard locks.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// The newest item of `key`, if the segment has one. Waits until the batch that wrote it is visible as a whole.
    #[inline]
    pub fn get(&self, hash: KeyHash, key: &[u8]) -> Result<Option<Item<'_>>> {
        let Some((_, offset, item)) = self.find(self.shard(hash), hash, key)? else { return Ok(None) };
        self.segment.indexing.wait(offset);
        Ok(Some(item))
    }

    /// Fetches the part of the index that [`LogStore::get`] needs.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        self.shard(hash).index.load().prefetch(self.hasher.placing(hash));
    }

    /// The newest item of `key`, with its slot in the index and its offset in the segment.
    #[inline]
    pub fn find(&self, shard: &Shard, hash: KeyHash, key: &[u8]) -> Result<Option<(Slot, u32, Item<'_>)>> {
        for (slot, offset) in shard.index.load().candidates(self.hasher.placing(hash)) {
            let item = self.segment.item_at(offset)?;
            if item.key == key {
                return Ok(Some((slot, offset, item)));
            }
        }
        Ok(None)
    }

    /// Makes the item at `offset`, just appended, the newest of its key. The caller holds the shard's lock, and
    /// `existing` is the slot that [`LogStore::find`] returned under the same lock.
    pub fn index_item(
        &self,
        shard: &Shard,
        hash: KeyHash,
        existing: Option<Slot>,
        offset: u32,
        waits: &LogWaits,
    ) -> Result<Indexed> {
        let order = hash;
        let hash = self.hasher.placing(hash);
        let index = shard.index.load();
        if let Some(slot) = existing {
            index.replace(slot, hash, offset);
            return Ok(Indexed::Done);
        }
        if index.len() < self.entries_max.now() && index.insert(hash, offset).is_ok() {
            self.list_prefix(shard, order, offset);
            return Ok(Indexed::Done);
        }
        if index.len() >= self.entries_max.now() {
            return Ok(Indexed::Full);
        }
        match waits.index.during(&*waits.clock, || self.larger_index(&index, hash, offset))? {
            None => Ok(Indexed::Full),
            Some(larger) => {
                shard.index.store(Arc::new(larger));
                self.list_prefix(shard, order, offset);
                Ok(Indexed::Done)
            }
        }
    }

    /// A larger index with one entry more; `None` if that takes more than the bound.
    fn larger_index(&self, index: &CuckooTable, hash: KeyHash, offset: u32) -> Result<Option<CuckooTable>> {
        let (mut entries, entries_max) = (index.len() * 2, self.entries_max.now());
        while entries < entries_max * 2 {
            let larger = CuckooTable::with_entries(entries.clamp(ENTRIES_MIN, entries_max));
            if self.copy_index(index, &larger)? && larger.insert(hash, offset).is_ok() {
                return Ok(Some(larger));
            }
            entries *= 2;
        }
        Ok(None)
    }

    /// Like [`LogStore::index_item`], but the index grows as needed: for items before which the segment cannot freeze,
    /// those of recovery and of a batch under way. The caller holds the shard's lock, or no other thread uses the
    /// store. Returns the item that is replaced.
    pub fn index_unbounded(&self, hash: KeyHash, key: &[u8], offset: u32) -> Result<Option<Item<'_>>> {
        let shard = self.shard(hash);
        let existing = self.find(shard, hash, key)?;
        let order = hash;
        let hash = self.hasher.placing(hash);
        let index = shard.index.load();
        if let Some((slot, _, item)) = existing {
            index.replace(slot, hash, offset);
            return Ok(Some(item));
        }
        self.list_prefix(shard, order, offset);
        if index.insert(hash, offset).is_ok() {
            return Ok(None);
        }
        let mut entries = index.len() + index.len() / 8 + ENTRIES_MIN;
        loop {
            let larger = CuckooTable::with_entries(entries);
            if self.copy_index(&index, &larger)? && larger.insert(hash, offset).is_ok() {
                shard.index.store(Arc::new(larger));
                return Ok(None);
            }
            entries += entries / 8;
        }
    }

    /// Adds the first item of a key to the list by which it is found by its prefix.
    fn list_prefix(&self, shard: &Shard, hash: KeyHash, offset: u32) {
        if self.hasher.is_semi_sorted() {
            shard.prefixes.lock().expect("no panic while held").push(hash.high(), offset);
        }
    }

    /// Calls `found` with hash, offset and content of the newest item of each key in the shard whose prefix has a hash
    /// in this range. The caller holds the shard's lock, or the store is closed. A few items of other prefixes may be
    /// included.
    pub fn for_each_of_prefixes<'s>(
        &'s self,
        shard: &Shard,
        prefix_hashes: RangeInclusive<u64>,
        mut found: impl FnMut(KeyHash, u32, Item<'s>),
    ) -> Result<()> {
        let offsets = shard.prefixes.lock().expect("no panic while held").offsets(prefix_hashes);
        for first in offsets {
            // The list has the first item of each key; the index leads to the newest.
            let key = self.segment.item_at(first)?.key;
            let hash = self.hasher.hash(key);
            if let Some((_, offset, item)) = self.find(shard, hash, key)? {
                found(hash, offset, item);
            }
        }
        Ok(())
    }

    /// Estimated number of keys with hashes in `range`: counted by prefixes in a semi-sorted keyspace, otherwise
    /// assuming uniform hashes.
    pub fn len_within(&self, range: HashRange) -> f64 {
        if !self.hasher.is_semi_sorted() {
            return self.len() as f64 * (range.high.saturating_sub(range.low) as f64 / u128::MAX as f64);
        }
        let (first, last) = range.high_halves();
        let count =
            |shard: &Shard| shard.prefixes.lock().expect("no panic while held").count(first..=last) as f64;
        self.shards.iter().map(count).sum()
    }

    fn copy_index(&self, from: &CuckooTable, to: &CuckooTable) -> Result<bool> {
        for (_, _, offset) in from.entries() {
            let item = self.segment.item_at(offset)?;
            if to.insert(self.hasher.placing(self.hasher.hash(item.key)), offset).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An index of these items of a shard.
    pub fn index_of(&self, offsets: &[u32]) -> Result<CuckooTable> {
        let mut entries = offsets.len();
        loop {
            let index = CuckooTable::with_entries(entries);
            let mut is_complete = true;
            for &offset in offsets {
                let hash = self.hasher.placing(self.hasher.hash(self.segment.item_at(offset)?.key));
                is_complete = index.insert(hash, offset).is_ok();
                if !is_complete {
                    break;
                }
            }
            if is_complete {
                return Ok(index);
            }
            entries += entries / 8 + 1;
        }
    }

    /// The references to blobs in the items that the indexes lead to.
    pub fn references(&self) -> Result<ReferenceCounts> {
        let mut references = ReferenceCounts::default();
        for shard in &self.shards {
            for (_, _, offset) in shard.index.load().entries() {
                references.add(&self.segment.item_at(offset)?);
            }
        }
        Ok(references)
    }

    /// Items in all shards, tombstones included.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.index.load().len()).sum()
    }

    /// Entries of the fullest shard.
    pub fn shard_len_max(&self) -> usize {
        self.shards.iter().map(|shard| shard.index.load().len()).max().unwrap_or(0)
    }

    /// Bytes of memory of the indexes and prefix lists.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = |shard: &Shard| {
            let prefixes = shard.prefixes.lock().expect("no panic while held").memory_bytes();
            shard.index.load().memory_bytes() as u64 + prefixes
        };
        self.shards.iter().map(bytes).sum()
    }
}

impl Shard {
    /// Excludes other writers of this shard.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, ()> {
        self.writer.lock().expect("no panic while held")
    }

    /// The same for a writer, whose wait is counted.
    #[inline]
    pub fn lock_to_write(&self, waits: &LogWaits) -> MutexGuard<'_, ()> {
        waits.lock(&self.writer)
    }

    pub fn index(&self) -> alluvium_io::sync::ArcSwapGuard<Arc<CuckooTable>> {
        self.index.load()
    }
}
