//! [`MergedItems`]: what a version of a semi-sorted keyspace holds in a range of hashes, in order.

use std::sync::Arc;

use alluvium_base::KeyHash;

use super::memory_budget::MemoryBudget;
use super::shared::Shared;
use crate::compact::{PullMerge, scan_streams};
use crate::error::Result;
use crate::item::Item;
use crate::level::Version;
use crate::log::LogStore;
use crate::table::{SectionRange, SectionScanner};

/// The newest items of all keys whose hashes lie in a range, tombstones among them: of the log by their places in it,
/// which are gathered at once, and of tables as they are read.
#[derive(Debug)]
pub(super) struct MergedItems {
    stores: Vec<Arc<LogStore>>,
    /// The newest item of each key in the log, by hash and key; those left.
    logged: std::vec::IntoIter<Logged>,
    next_logged: Option<Logged>,
    tables: PullMerge,
}

#[derive(Clone, Copy, Debug)]
struct Logged {
    hash: KeyHash,
    /// Of the stores, young to old.
    store: u32,
    offset: u32,
}

impl MergedItems {
    /// All that the version holds in `low..=high`: one prefix or all.
    pub fn of(
        shared: &Shared,
        version: &Version,
        budget: &MemoryBudget,
        low: u128,
        high: u128,
    ) -> Result<Self> {
        let stores = version.log_stores.clone();
        let mut logged = Vec::new();
        for (store, number) in stores.iter().zip(0..) {
            gather(store, number, low, high, &mut logged)?;
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
        let mut logged = logged.into_iter();
        let streams = streams(version, low, high);
        let read_bytes = budget.read_bytes_each(streams.len());
        let mut scanners = scan_streams(&*shared.storage, &streams, read_bytes)?;
        SectionScanner::begin_together(&*shared.storage, &mut scanners)?;
        let tables = PullMerge::new(scanners)?;
        Ok(Self { next_logged: logged.next(), stores, logged, tables })
    }

    /// Calls `visit` with the next item; `false` behind the last.
    pub fn step(&mut self, visit: impl FnOnce(KeyHash, &Item<'_>)) -> Result<bool> {
        let in_tables = self.tables.current();
        let Some(logged) = self.next_logged else {
            let Some((hash, encoded)) = in_tables else { return Ok(false) };
            visit(hash, &encoded.item);
            self.tables.advance()?;
            return Ok(true);
        };
        let item = self.stores[logged.store as usize].segment.item_at(logged.offset)?;
        let order = in_tables.map_or(std::cmp::Ordering::Less, |(hash, encoded)| {
            logged.hash.cmp(&hash).then_with(|| item.key.cmp(encoded.item.key))
        });
        if order.is_gt() {
            if let Some((hash, encoded)) = in_tables {
                visit(hash, &encoded.item);
            }
            self.tables.advance()?;
            return Ok(true);
        }
        visit(logged.hash, &item);
        self.next_logged = self.logged.next();
        if order.is_eq() {
            self.tables.advance()?;
        }
        Ok(true)
    }
}

/// Adds the items of a log store in `low..=high`. With all its shards held at once, so that a batch is seen as a whole.
fn gather(store: &LogStore, number: u32, low: u128, high: u128, logged: &mut Vec<Logged>) -> Result<()> {
    let _no_writers: Vec<_> = store.shards().iter().map(|shard| shard.lock()).collect();
    let prefix_hash = (low >> 64) as u64;
    for shard in store.shards() {
        if prefix_hash == (high >> 64) as u64 {
            store.for_each_of_prefix(shard, prefix_hash, |hash, offset, _| {
                if (low..=high).contains(&hash.0) {
                    logged.push(Logged { hash, store: number, offset });
                }
            })?;
            continue;
        }
        for (_, _, offset) in shard.index().entries() {
            let hash = store.hasher().hash(store.segment.item_at(offset)?.key);
            if (low..=high).contains(&hash.0) {
                logged.push(Logged { hash, store: number, offset });
            }
        }
    }
    Ok(())
}

/// What runs and levels hold in `low..=high`, young to old.
pub(super) fn streams(version: &Version, low: u128, high: u128) -> Vec<Vec<SectionRange>> {
    let of_run = |run: &Arc<crate::level::Run>| {
        let sections = run.sections.iter().flatten().map(|section| &section.section);
        let within = sections.filter_map(|section| {
            let (from, to) = section.range();
            let range = SectionRange { section: section.clone(), low: low.max(from), high: high.min(to) };
            (range.low <= range.high).then_some(range)
        });
        within.collect::<Vec<_>>()
    };
    let runs = version.runs.iter().map(of_run).filter(|ranges| !ranges.is_empty());
    runs.chain(version.streams_within(low, high)).collect()
}
