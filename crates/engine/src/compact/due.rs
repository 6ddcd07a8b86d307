//! [`Due`]: which unit of the hash space merges next, and how urgently.

use std::sync::Arc;

use alluvium_model::{GARBAGE_SHARE_MAX, Growth, Plan};

use crate::db::{KeyspaceShared, Shared};
use crate::level::{MergeUnit, Version};

/// Bytes of a unit's runs from which on it is merged, so that what a merge holds in memory is bounded.
const UNIT_BYTES_MAX: u64 = 256 << 20;

/// The unit most in need of merging, and how far its keyspace is over its bound: above 1 it is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub keyspace: Arc<KeyspaceShared>,
    pub unit: MergeUnit,
    pub pressure: f64,
}

/// Picks the fullest unit of the keyspace that is furthest over its bound. With `all` any unit is due.
///
/// Merging the fullest unit whenever the sum is over the bound staggers the units by itself: in the steady state they
/// are evenly spread between empty and twice the mean, so memory stays near the bound instead of swinging below it.
pub(crate) fn pick(shared: &Shared, all: bool) -> Option<Due> {
    let mut best: Option<Due> = None;
    for keyspace in shared.all_keyspaces() {
        let version = keyspace.version.load();
        let units = MergeUnit::all(&version.runs);
        let Some(fullest) = units.iter().max_by_key(|unit| unit.items).copied() else { continue };
        let Bounds { runs_max, items_max, garbage_max } = bounds(shared, &keyspace, &version);
        let less_garbage = |one: &&MergeUnit, other: &&MergeUnit| one.garbage.total_cmp(&other.garbage);
        let foulest = units.iter().max_by(less_garbage).copied().unwrap_or(fullest);
        let tallest = units.iter().max_by_key(|unit| unit.runs).copied().unwrap_or(fullest);
        let heaviest = units.iter().max_by_key(|unit| unit.bytes).copied().unwrap_or(fullest);
        let items: u64 = units.iter().map(|unit| unit.items).sum();
        let by_items = items as f64 / items_max.max(1.0);
        let by_runs = f64::from(tallest.runs) / f64::from(runs_max);
        let by_garbage = version.garbage_estimate() / garbage_max.max(1.0);
        let by_bytes = heaviest.bytes as f64 / UNIT_BYTES_MAX as f64;
        let others = [(tallest, by_runs), (foulest, by_garbage), (heaviest, by_bytes)];
        let (unit, pressure) = others
            .into_iter()
            .filter(|(_, pressure)| *pressure > 1.0)
            .fold((fullest, by_items), |most, other| if other.1 > most.1 { other } else { most });
        let due = all || pressure > 1.0;
        if due && best.as_ref().is_none_or(|best| best.pressure < pressure) {
            best = Some(Due { keyspace, unit, pressure });
        }
    }
    best
}

/// The fullest unit of a keyspace, due or not; `None` when it has no runs.
pub(crate) fn pick_of(keyspace: &Arc<KeyspaceShared>) -> Option<Due> {
    let units = MergeUnit::all(&keyspace.version.load().runs);
    let fullest = units.into_iter().max_by_key(|unit| unit.items)?;
    Some(Due { keyspace: keyspace.clone(), unit: fullest, pressure: 0.0 })
}

/// How far the keyspaces are over their bounds: the largest pressure of any.
pub(crate) fn pressure(shared: &Shared) -> f64 {
    let pressures = shared.all_keyspaces().into_iter().map(|keyspace| {
        let version = keyspace.version.load();
        let bounds = bounds(shared, &keyspace, &version);
        let by_items = version.run_items() as f64 / bounds.items_max.max(1.0);
        by_items.max(version.garbage_estimate() / bounds.garbage_max.max(1.0))
    });
    pressures.fold(0.0, f64::max)
}

/// How much runs may hold.
struct Bounds {
    /// Most runs over one place.
    runs_max: u32,
    /// Most items in runs.
    items_max: f64,
    /// Most old values that have newer ones in runs.
    garbage_max: f64,
}

fn bounds(shared: &Shared, keyspace: &KeyspaceShared, version: &Version) -> Bounds {
    let Plan::Levels { levels, .. } = &keyspace.plan else {
        unreachable!("the engine refuses chained plans")
    };
    let Growth::Tiering { runs_max, .. } = levels[0].growth else {
        unreachable!("the engine refuses plans whose first level is leveled")
    };
    let present = version.sorted_items() + version.run_items();
    let share_items = levels[0].growth.items_max(present.max(shared.settings.expected_items) as f64);
    // A unit swings up to twice the mean: the mean stays under half of what `runs_max` full freezes hold.
    let freeze_items = freeze_items(shared, version);
    let runs_items = f64::from(runs_max) / 2.0 * freeze_items as f64;
    let live = present as f64 - version.garbage_estimate();
    Bounds {
        runs_max,
        items_max: share_items.min(runs_items).max(freeze_items as f64),
        garbage_max: (GARBAGE_SHARE_MAX * live).max(freeze_items as f64),
    }
}

/// Items of one freeze: as many as the log's index holds, or as a segment does where that is less. Where runs collect
/// shards are many, and under a memory limit segments are small: the index alone says several times too much.
fn freeze_items(shared: &Shared, version: &Version) -> u64 {
    let by_index = (version.active().entries_max() as u64) << version.active().shard_bits();
    let sections = version.runs.iter().flat_map(|run| run.sections.iter().flatten());
    let young = sections.map(|section| (section.section.item_count(), section.section.used_bytes()));
    let old = version.sorted.iter().map(|table| (table.section.item_count(), table.section.used_bytes()));
    let (items, bytes) = young.chain(old).fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    by_index.min((shared.memory.budget().segment_bytes / item_bytes).max(1))
}
