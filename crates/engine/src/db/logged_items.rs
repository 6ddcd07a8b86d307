//! [`LoggedItems`]: the items of a version's log stores in a range of hashes, in order.

use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};

use crate::error::Result;
use crate::item::Item;
use crate::level::Version;
use crate::log::LogStore;

/// Ranges of more than a 16th of the hash space are collected from the index, narrower ones from the list of prefixes.
const NARROW_BITS: u32 = 4;

/// The newest items of all keys in the log whose hashes are in a range, tombstones included, by hash and key. Takes 32
/// bytes for each, and reads the items where the log stores them.
#[derive(Debug)]
pub(super) struct LoggedItems {
    stores: Vec<Arc<LogStore>>,
    left: std::vec::IntoIter<Logged>,
    next: Option<Logged>,
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    hash: KeyHash,
    /// Number of the store, counted from the youngest.
    store: u32,
    offset: u32,
}

impl LoggedItems {
    /// The items in `range`. In a semi-sorted keyspace, a batch is seen as a whole or not at all.
    pub fn of(version: &Version, range: HashRange) -> Result<Self> {
        let stores = version.log_stores.clone();
        let mut logged = Vec::new();
        for (store, number) in stores.iter().zip(0..) {
            match store.hasher().is_semi_sorted() {
                true => gather_prefixes(store, number, range, &mut logged)?,
                false => gather_hashes(store, number, range, &mut logged)?,
            }
        }
        let mut failure = None;
        let mut key = |of: &Logged| match stores[of.store as usize].segment.item_at(of.offset) {
            Ok(item) => item.key,
            Err(error) => {
                failure = Some(error);
                &[]
            }
        };
        logged.sort_unstable_by(|one, other| {
            let by_hash = one.hash.cmp(&other.hash);
            by_hash.then_with(|| key(one).cmp(key(other))).then(one.store.cmp(&other.store))
        });
        logged.dedup_by(|older, newer| older.hash == newer.hash && key(older) == key(newer));
        if let Some(failure) = failure {
            return Err(failure);
        }
        let mut left = logged.into_iter();
        Ok(Self { next: left.next(), stores, left })
    }

    /// The current item, initially the first; `None` behind the last.
    pub fn current(&self) -> Result<Option<(KeyHash, Item<'_>)>> {
        let Some(Logged { hash, store, offset }) = self.next else { return Ok(None) };
        Ok(Some((hash, self.stores[store as usize].segment.item_at(offset)?)))
    }

    /// The hash of that item.
    pub fn hash(&self) -> Option<KeyHash> {
        self.next.map(|logged| logged.hash)
    }

    pub fn advance(&mut self) {
        self.next = self.left.next();
    }
}

/// Adds the items of a semi-sorted store in `range`, with all its shards locked at once.
fn gather_prefixes(store: &LogStore, number: u32, range: HashRange, logged: &mut Vec<Logged>) -> Result<()> {
    let _no_writers: Vec<_> = store.shards().iter().map(|shard| shard.lock()).collect();
    for shard in store.shards() {
        if (range.high - range.low) >> (128 - NARROW_BITS) == 0 {
            let (first, last) = range.high_halves();
            store.for_each_of_prefixes(shard, first..=last, |hash, offset, _| {
                if range.contains(hash.0) {
                    logged.push(Logged { hash, store: number, offset });
                }
            })?;
            continue;
        }
        gather_shard(store, number, shard.index().entries().map(|(.., offset)| offset), range, logged)?;
    }
    Ok(())
}

/// Adds the items of a store of hashed keys in `range`, from one shard after the other.
fn gather_hashes(store: &LogStore, number: u32, range: HashRange, logged: &mut Vec<Logged>) -> Result<()> {
    for shard in &store.shards()[range.parts(store.shard_bits())] {
        // Writers wait only until the offsets of the newest items are known: the segment keeps the items there.
        let offsets: Vec<u32> = {
            let _writer = shard.lock();
            shard.index().entries().map(|(.., offset)| offset).collect()
        };
        gather_shard(store, number, offsets.into_iter(), range, logged)?;
    }
    Ok(())
}

fn gather_shard(
    store: &LogStore,
    number: u32,
    offsets: impl Iterator<Item = u32>,
    range: HashRange,
    logged: &mut Vec<Logged>,
) -> Result<()> {
    for offset in offsets {
        let hash = store.hasher().hash(store.segment.item_at(offset)?.key);
        if range.contains(hash.0) {
            logged.push(Logged { hash, store: number, offset });
        }
    }
    Ok(())
}
