//! [`Due`]: which part of which level is merged next, and how urgently.

use std::sync::Arc;

use alluvium_base::SegmentId;
use alluvium_model::policy::{self, Shape, YoungestBounds, mean_runs, runs_full};
use alluvium_model::{GARBAGE_SHARE_MAX, Growth};

use super::level_due::{Order, next_of, of_levels};
use super::level_table::level_spec;
use super::old_values::{OldValues, collects};
use super::repeats::ends_garbage;
use crate::core::{DuePlace, KeyspaceShared, Shared, Standing};
use crate::level::{MergeUnit, Place, Version};

/// The unit or container most in need of merging, and how far its keyspace exceeds its bound: above 1 it is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub keyspace: Arc<KeyspaceShared>,
    pub place: Place,
    pub pressure: f64,
    /// Whether the bound exceeded is that of obsolete versions. Then it is merged with what the next level holds in its
    /// range.
    pub collects: bool,
}

/// Picks, among all keyspaces and levels, the unit or container that exceeds its bound most.
///
/// To merge the fullest unit whenever the sum exceeds the bound staggers the units automatically: in the steady state
/// they are evenly distributed between empty and twice the mean, so memory stays close to the bound instead of swinging
/// below it.
pub(crate) fn pick(shared: &Shared) -> Option<Due> {
    let mut best: Option<Due> = None;
    for keyspace in shared.all_keyspaces() {
        let Some(due) = standing(shared, &keyspace).due else { continue };
        let DuePlace { place, pressure, collects } = due;
        if best.as_ref().is_none_or(|best| best.pressure < pressure) {
            best = Some(Due { keyspace: keyspace.clone(), place, pressure, collects });
        }
    }
    best
}

/// How the keyspace stands in relation to the bounds of its plan.
fn standing(shared: &Shared, keyspace: &KeyspaceShared) -> Standing {
    let version = keyspace.version.load_full();
    let segment_bytes = shared.memory.budget().segment_bytes;
    keyspace.standing.of(&version, segment_bytes, || {
        let bounds = bounds(shared, keyspace, &version, segment_bytes);
        let by_items = version.run_items() as f64 / bounds.items_max.max(1.0);
        let mut pressure = by_items.max(bounds.by_garbage(&version));
        let young = of_runs(&version, &bounds);
        let mut due: Option<DuePlace> = young.filter(|young| young.pressure > 1.0);
        for level in of_levels(Order::of(keyspace), &version, bounds.room, &bounds.old_values) {
            pressure = pressure.max(level.pressure);
            if level.due > due.map_or(1.0, |due| due.pressure) {
                due = Some(DuePlace { place: level.place, pressure: level.due, collects: level.collects });
            }
        }
        Standing { pressure, due }
    })
}

/// What to merge next so that finally all items are in one run of each keyspace's last level, or `None` if they are.
pub(crate) fn pick_any(shared: &Shared) -> Option<Due> {
    shared.all_keyspaces().iter().find_map(|keyspace| {
        let version = keyspace.version.load();
        let place = any_above_last(keyspace, &version).or_else(|| {
            let last = version.last_level();
            let pile =
                version.level(last).containers().iter().find(|container| container.tables.len() > 1)?;
            Some(Place::Container { level: last, range: pile.range })
        })?;
        Some(Due { keyspace: keyspace.clone(), place, pressure: 0.0, collects: false })
    })
}

/// What to merge next so that finally all items of a keyspace are in its last level, or `None` if they are.
pub(crate) fn pick_of(keyspace: &Arc<KeyspaceShared>) -> Option<Due> {
    let place = any_above_last(keyspace, &keyspace.version.load())?;
    Some(Due { keyspace: keyspace.clone(), place, pressure: 0.0, collects: false })
}

/// The runs of a keyspace, if some of their items come from log segments before this one.
pub(crate) fn pick_runs_before(keyspace: &Arc<KeyspaceShared>, segment: SegmentId) -> Option<Due> {
    let version = keyspace.version.load();
    let sections = || version.runs.iter().flat_map(|run| run.sections.iter().flatten());
    if !sections().any(|section| section.section.segments().newest < segment) {
        return None;
    }
    let fullest = MergeUnit::all(&version.runs).into_iter().max_by_key(|unit| unit.items)?;
    Some(Due { keyspace: keyspace.clone(), place: Place::Unit(fullest), pressure: 0.0, collects: false })
}

fn any_above_last(keyspace: &KeyspaceShared, version: &Version) -> Option<Place> {
    if let Some(fullest) = MergeUnit::all(&version.runs).into_iter().max_by_key(|unit| unit.items) {
        return Some(Place::Unit(fullest));
    }
    let above_last = version.numbered_levels().filter(|&(number, _)| number < version.last_level());
    above_last.into_iter().find_map(|(number, level)| next_of(number, level, Order::of(keyspace)))
}

/// How far the keyspaces exceed their bounds, as far as writers have to pay for it: the largest pressure of any level.
pub(crate) fn pressure(shared: &Shared) -> f64 {
    let pressures = shared.all_keyspaces().into_iter();
    let pressures =
        pressures.map(|keyspace| keyspace.inherited_pressure.excuse(pressure_of(shared, &keyspace)));
    pressures.fold(0.0, f64::max)
}

/// How far the keyspace exceeds the bounds of its plan, including what it exceeded when it got the plan.
pub(crate) fn pressure_of(shared: &Shared, keyspace: &KeyspaceShared) -> f64 {
    standing(shared, keyspace).pressure
}

/// The unit of the youngest level to be merged next, how far the level exceeds its bounds, and whether it is due for
/// obsolete versions that handing on runs would not drop. `None` if there are no runs.
fn of_runs(version: &Version, bounds: &Bounds) -> Option<DuePlace> {
    let units = MergeUnit::all(&version.runs);
    let bounds = YoungestBounds {
        runs_max: bounds.runs_max,
        items_max: bounds.items_max,
        by_obsolete: bounds.by_garbage(version),
        collects: collects(&version.plan.plan, 0),
    };
    let choice = policy::of_youngest(&Units(&units), &bounds)?;
    let place = Place::Unit(units[choice.place]);
    Some(DuePlace { place, pressure: choice.pressure, collects: choice.collects })
}

/// Units of the youngest level, as the policy sees them.
struct Units<'a>(&'a [MergeUnit]);

impl Shape for Units<'_> {
    fn places(&self) -> usize {
        self.0.len()
    }

    fn runs(&self, place: usize) -> f64 {
        f64::from(self.0[place].runs)
    }

    fn items(&self, place: usize) -> f64 {
        self.0[place].items as f64
    }

    fn bytes(&self, place: usize) -> f64 {
        self.0[place].bytes as f64
    }

    fn obsolete(&self, place: usize) -> f64 {
        self.0[place].garbage
    }

    fn span(&self, place: usize) -> f64 {
        0.5f64.powi(self.0[place].bits as i32)
    }

    /// A plan's youngest level is never its last.
    fn runs_full(&self, _: usize, runs_max: u32) -> f64 {
        f64::from(runs_max)
    }
}

/// The bounds on runs.
struct Bounds {
    /// Maximum runs over one unit.
    runs_max: u32,
    /// Maximum items in runs.
    items_max: f64,
    /// Maximum obsolete versions that are hidden by items in runs.
    garbage_max: f64,
    /// Items of the level when every unit is full.
    room: f64,
    /// Obsolete versions in all levels.
    old_values: OldValues,
}

impl Bounds {
    /// How far the level exceeds its bound on obsolete versions hidden by its runs, or how far all levels exceed theirs
    /// if this level is the one to be merged for that.
    fn by_garbage(&self, version: &Version) -> f64 {
        let in_runs = version.garbage_estimate() / self.garbage_max.max(1.0);
        in_runs.max(self.old_values.pressure(0))
    }
}

fn bounds(shared: &Shared, keyspace: &KeyspaceShared, version: &Version, segment_bytes: u64) -> Bounds {
    let growth = level_spec(&version.plan.plan, 0).growth;
    let Growth::Tiering { runs_max, .. } = growth else {
        unreachable!("the engine refuses plans whose first level is leveled")
    };
    let present = version.level_items() + version.run_items();
    let share_items = growth.items_max(present.max(shared.settings.expected_items) as f64);
    let freeze_items = freeze_items(version, segment_bytes) as f64;
    let units = f64::from(1 << keyspace.run_shard_bits(version.active()));
    let runs_items = mean_runs(f64::from(runs_max), units) * freeze_items;
    let items_max = share_items.max(freeze_items).min(runs_items);
    let runs_full = runs_full(items_max / freeze_items, units).min(f64::from(runs_max));
    let live = present as f64 - version.garbage_estimate();
    let garbage_max = match ends_garbage(&version.plan.plan, 0) {
        true => (GARBAGE_SHARE_MAX * live).max(freeze_items),
        false => f64::INFINITY,
    };
    let old_values = OldValues::of(version, freeze_items);
    Bounds { runs_max, items_max, garbage_max, room: runs_full * freeze_items, old_values }
}

/// Items of one freeze: as many as the log's index has room for, or as fit in a segment if that is less. Where runs
/// accumulate there are many shards, and under a memory limit segments are small: the index alone would give several
/// times too many.
fn freeze_items(version: &Version, segment_bytes: u64) -> u64 {
    let by_index = (version.active().entries_max() as u64) << version.active().shard_bits();
    let sections = version.sections().map(|section| (section.item_count(), section.used_bytes()));
    let (items, bytes) = sections.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    by_index.min((segment_bytes / item_bytes).max(1))
}
