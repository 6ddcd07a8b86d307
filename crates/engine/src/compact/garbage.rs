//! Rewriting what holds much that nobody can read any more: expired items, and removed ones with their tombstones.
//!
//! Merges drop both as they pass, but where nothing is written no merge passes. So a place that is for a good part
//! garbage is rewritten for its own sake, when nothing else is due and at the rate of merges. How much garbage there is
//! follows from what the sections' directories say: counts of tombstones, and when their items expire. A rewritten
//! place has none, so it takes as much garbage as before until it is rewritten again: each byte given back costs the
//! writing of three at most.

use std::sync::Arc;

use super::due::Due;
use super::merge::merge;
use super::merge_part::write_parts;
use super::young::YoungItems;
use crate::db::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{MergeUnit, SortedTable, Version};

/// A place is rewritten when this share of its items is garbage.
const GARBAGE_SHARE: f64 = 0.25;

/// A place worth rewriting.
#[derive(Debug)]
pub(crate) struct GarbagePlace {
    keyspace: Arc<KeyspaceShared>,
    what: What,
    /// Which part of the place is garbage.
    share: f64,
}

#[derive(Debug)]
enum What {
    /// A unit of hash runs, with what it lies over.
    Unit(MergeUnit),
    /// A table of the sorted run: its part `low..=high` of leading hash bits.
    Table { low: u64, high: u64 },
}

/// Items of a place, and those among them that are garbage.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    items: f64,
    garbage: f64,
    bytes: f64,
}

impl Weight {
    fn of_table(table: &SortedTable, low: u64, high: u64, now_ms: u64) -> Self {
        let items = table.items_estimate() as f64 * table.share_within(low, high);
        let share = items / (table.section.item_count() as f64).max(1.0);
        Self {
            items,
            garbage: table.section.expired_estimate(now_ms) as f64 * share,
            bytes: table.section.pages_bytes() as f64 * share,
        }
    }

    fn of_unit(version: &Version, unit: &MergeUnit, now_ms: u64) -> Self {
        let (low, high) = unit.range();
        let mut weight = Self::default();
        let old = version.sorted_within(low, high).iter();
        for old in old.map(|table| Self::of_table(table, low, high, now_ms)) {
            weight.items += old.items;
            weight.garbage += old.garbage;
            weight.bytes += old.bytes;
        }
        let (mut tombstones, old_live) = (0.0, weight.items - weight.garbage);
        for (_, _, section) in unit.sections(&version.runs) {
            let section = &section.section;
            tombstones += section.tombstone_count() as f64;
            weight.items += section.item_count() as f64;
            weight.garbage += section.expired_estimate(now_ms) as f64;
            weight.bytes += section.pages_bytes() as f64;
        }
        // A tombstone is garbage when it is merged, and so is what it hides, as a rule.
        weight.garbage += tombstones + tombstones.min(old_live);
        weight
    }

    fn share(&self) -> f64 {
        self.garbage / self.items.max(1.0)
    }

    fn is_worth_rewriting(&self, garbage_bytes_min: u64) -> bool {
        self.garbage > 0.0
            && self.share() >= GARBAGE_SHARE
            && self.share() * self.bytes >= garbage_bytes_min as f64
    }
}

/// The place with the largest share of garbage among those that are worth rewriting.
pub(crate) fn pick_garbage(shared: &Shared) -> Option<GarbagePlace> {
    let now_ms = shared.now_ms();
    let mut best: Option<GarbagePlace> = None;
    for keyspace in shared.all_keyspaces() {
        let version = keyspace.version.load();
        let units = MergeUnit::all(&version.runs);
        let units = units.iter().map(|unit| (Weight::of_unit(&version, unit, now_ms), What::Unit(*unit)));
        let tables = version.sorted.iter().map(|table| {
            let (low, high) = (table.low, table.high);
            (Weight::of_table(table, low, high, now_ms), What::Table { low, high })
        });
        for (weight, what) in units.chain(tables) {
            let share = weight.share();
            let is_better = best.as_ref().is_none_or(|best| best.share < share);
            if is_better && weight.is_worth_rewriting(shared.settings.garbage_bytes_min) {
                best = Some(GarbagePlace { keyspace: keyspace.clone(), what, share });
            }
        }
    }
    best
}

/// Rewrites one place, if there is one worth it; returns whether there was.
pub(crate) fn give_back_garbage(shared: &Shared) -> Result<bool> {
    let Some(GarbagePlace { keyspace, what, .. }) = pick_garbage(shared) else { return Ok(false) };
    match what {
        What::Unit(unit) => merge(shared, &Due { keyspace, unit, pressure: 0.0 })?,
        What::Table { low, high } => rewrite(shared, &keyspace, [(low, high)].into_iter())?,
    }
    Ok(true)
}

/// Rewrites the tables of the sorted runs in which something has expired, without that.
pub(crate) fn drop_expired(shared: &Shared) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    for keyspace in shared.all_keyspaces() {
        let sorted = keyspace.version.load().sorted.clone();
        let now_ms = shared.now_ms();
        let expiring = sorted.iter().filter(|table| table.section.any_expired(now_ms));
        let ranges: Vec<_> = expiring.map(|table| (table.low, table.high)).collect();
        drop(sorted);
        rewrite_locked(shared, &keyspace, ranges.into_iter())?;
    }
    Ok(())
}

/// Rewrites these ranges of leading hash bits of the sorted run, without what has expired.
fn rewrite(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    ranges: impl Iterator<Item = (u64, u64)>,
) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    // The keyspace may have been cleared or dropped since the ranges were chosen.
    let is_there = |&(low, high): &(u64, u64)| !keyspace.version.load().sorted_within(low, high).is_empty();
    rewrite_locked(shared, keyspace, ranges.filter(is_there))
}

fn rewrite_locked(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    ranges: impl Iterator<Item = (u64, u64)>,
) -> Result<()> {
    let references = write_parts(shared, keyspace, &YoungItems::default(), ranges)?;
    shared.blobs.unhide(&references);
    Ok(())
}
