//! Rewrites units and containers with much garbage that nobody can read: expired items, and removed items with their
//! tombstones.
//!
//! Merges drop both, but where nothing is written no merge occurs. A unit or container with a large share of garbage is
//! therefore rewritten for that reason alone, when nothing else is due and at the rate of merges. The amount of garbage
//! follows from the sections' directories: counts of tombstones, and expiry times. A rewritten unit or container has no
//! garbage, so it accumulates as much as before until it is rewritten again: each byte given back costs the writing of
//! at most three.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::due::Due;
use super::flow::Flow;
use super::merge::merge;
use super::merge_part::write_parts;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{Container, Levels, MergeUnit, Place, PlacedTable};
use crate::merge::YoungItems;

/// Share of garbage from which on a unit or container is rewritten.
const GARBAGE_SHARE: f64 = 0.25;

/// A unit or container worth rewriting.
#[derive(Debug)]
pub(crate) struct GarbagePlace {
    keyspace: Arc<KeyspaceShared>,
    place: Place,
    /// The share of its items that is garbage.
    share: f64,
}

/// Items of a unit or container, and how many of them are garbage.
#[derive(Clone, Copy, Debug, Default)]
struct Weight {
    items: f64,
    garbage: f64,
    bytes: f64,
}

impl Weight {
    /// The content of the levels below the one of this number in `range`. Tombstones count as items that are kept.
    fn below(levels: &Levels, number: usize, range: HashRange, now_ms: u64) -> Self {
        let mut weight = Self::default();
        for level in &levels.levels()[number..] {
            for container in level.within(range) {
                let Some(range) = container.range.clip(range) else { continue };
                container.tables.iter().for_each(|table| weight.add_table(table, range, now_ms));
            }
        }
        if number + 1 < levels.last_level() {
            // A merge into the next level keeps expired items further below.
            weight.garbage = 0.0;
        }
        weight
    }

    fn add_table(&mut self, table: &PlacedTable, range: HashRange, now_ms: u64) {
        let items = table.items_within(range);
        let share = items / (table.section.item_count() as f64).max(1.0);
        self.items += items;
        self.garbage += table.section.expired_estimate(now_ms) as f64 * share;
        self.bytes += table.bytes_within(range);
    }

    fn of_unit(levels: &Levels, unit: &MergeUnit, now_ms: u64) -> Self {
        let mut weight = Self::below(levels, 0, unit.range(), now_ms);
        let (mut tombstones, old_live) = (0.0, weight.items - weight.garbage);
        for (_, _, section) in levels.unit_sections(unit.bits, unit.index) {
            let section = &section.section;
            tombstones += section.tombstone_count() as f64;
            weight.items += section.item_count() as f64;
            weight.garbage += section.expired_estimate(now_ms) as f64;
            weight.bytes += section.pages_bytes() as f64;
        }
        weight.add_tombstones(tombstones, old_live);
        weight
    }

    fn of_container(levels: &Levels, number: usize, container: &Container<PlacedTable>, now_ms: u64) -> Self {
        let &Container { range, ref tables } = container;
        let mut weight = Self::below(levels, number, range, now_ms);
        let old_live = weight.items - weight.garbage;
        let mut tombstones = 0.0;
        for table in tables {
            weight.add_table(table, range, now_ms);
            let share = table.items_within(range) / (table.section.item_count() as f64).max(1.0);
            tombstones += table.section.tombstone_count() as f64 * share;
        }
        // In the last level they hide items of the same container.
        let is_last = number == levels.last_level();
        weight.add_tombstones(tombstones, if is_last { weight.items - tombstones } else { old_live });
        weight
    }

    /// A tombstone is garbage when it is merged into the last level, and usually so is an item that it hides.
    fn add_tombstones(&mut self, tombstones: f64, old_live: f64) {
        self.garbage += tombstones + tombstones.min(old_live.max(0.0));
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

/// The unit or container with the largest share of garbage among those that are worth rewriting.
pub(crate) fn pick_garbage(shared: &Shared) -> Option<GarbagePlace> {
    let now_ms = shared.now_ms();
    let mut best: Option<GarbagePlace> = None;
    for keyspace in shared.all_keyspaces() {
        let version = keyspace.version.load();
        let levels = &version.body;
        let units = levels.units();
        let units = units.iter().map(|unit| (Weight::of_unit(levels, unit, now_ms), Place::Unit(*unit)));
        let containers = levels.numbered_levels().flat_map(|(level, tables)| {
            tables.containers().iter().map(move |container| {
                let place = Place::Container { level, range: container.range };
                (Weight::of_container(levels, level, container, now_ms), place)
            })
        });
        for (weight, place) in units.chain(containers) {
            let share = weight.share();
            let is_better = best.as_ref().is_none_or(|best| best.share < share);
            if is_better && weight.is_worth_rewriting(shared.settings.garbage_bytes_min) {
                best = Some(GarbagePlace { keyspace: keyspace.clone(), place, share });
            }
        }
    }
    best
}

/// Rewrites one unit or container if one is worth it; returns whether there was one. Above the last level it is merged
/// into the next level. There its tombstones count again, against the items that they hide, until they reach the last
/// level.
pub(crate) fn give_back_garbage(shared: &Shared) -> Result<bool> {
    let Some(GarbagePlace { keyspace, place, .. }) = pick_garbage(shared) else { return Ok(false) };
    match place {
        Place::Container { level, range } if level == keyspace.version.load().body.last_level() => {
            rewrite(shared, &keyspace, level, [range].into_iter())?;
        }
        place => merge(shared, &Due { keyspace, place, pressure: 0.0, collects: false })?,
    }
    Ok(true)
}

/// Rewrites the tables of the last levels in which items have expired, without these items.
pub(crate) fn drop_expired(shared: &Shared) -> Result<()> {
    for keyspace in shared.all_keyspaces() {
        let version = keyspace.version.load_full();
        let (now_ms, last) = (shared.now_ms(), version.body.last_level());
        let expiring = |container: &&Container<PlacedTable>| {
            container.tables.iter().any(|table| table.section.any_expired(now_ms))
        };
        let containers = version.body.level(last).containers().iter().filter(expiring);
        let ranges: Vec<_> = containers.map(|container| container.range).collect();
        drop(version);
        rewrite(shared, &keyspace, last, ranges.into_iter())?;
    }
    Ok(())
}

/// Rewrites these ranges of hashes of a level, each as one table, without expired items.
pub(super) fn rewrite(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    level: usize,
    ranges: impl Iterator<Item = HashRange>,
) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    // Since the ranges were chosen, the keyspace may have been cleared or dropped, or its plan changed.
    let is_there = |&range: &HashRange| keyspace.version.load().body.has_tables_in(level, range);
    let ranges = ranges.filter(is_there);
    let counts = write_parts(shared, keyspace, &Flow::within_level(level), &YoungItems::default(), ranges)?;
    shared.blobs.unhide(&counts.placed);
    Ok(())
}
