//! [`Due`]: which part of which level is merged next, and how urgently.

use std::sync::Arc;

use alluvium_base::SegmentId;
use alluvium_model::policy::{Bounds, Choice, Decision, Holding, PlaceFigures, densest, most_due};

use super::shapes::{Containers, Order, Units, obsolete_in};
use crate::core::{DuePlace, KeyspaceShared, Shared, Standing};
use crate::level::{Container, Level, Levels, Place, PlacedTable, Version};
use crate::table::Section;

/// The share of the memory of filters and indexes that is planned for: the rest is for those of the merge in progress.
const YOUNG_SHARE: f64 = 0.9;
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
        let choices = choices(shared, keyspace, &version, segment_bytes);
        let pressure = choices.iter().flatten().map(|choice| choice.slowing).fold(0.0, f64::max);
        let due = most_due(choices).map(|(number, Choice { place, pressure, collects, .. })| DuePlace {
            place: place_of(&version, number, place),
            pressure,
            collects,
        });
        Standing { pressure, due }
    })
}

/// What each level merges next; `None` for those that are empty or unbounded.
fn choices(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    segment_bytes: u64,
) -> Vec<Option<Choice>> {
    let holding = holding(shared, keyspace, version, segment_bytes);
    let bounds = Bounds::new(&version.body.plan().levels, &holding);
    let order = Order::of(keyspace);
    let mut choices = vec![bounds.choose(0, &Units(&version.body.units()))];
    let below = version.body.numbered_levels();
    choices.extend(below.map(|(number, level)| bounds.choose(number, &Containers { level, order })));
    choices
}

/// The place of this position in the level of this number.
fn place_of(version: &Version, number: usize, place: usize) -> Place {
    match number {
        0 => Place::Unit(version.body.units()[place]),
        _ => place_in(number, &version.body.level(number).containers()[place]),
    }
}

/// What is merged next, with all that the choice depends on. For tests that replay it.
pub(crate) fn decision(shared: &Shared, keyspace: &KeyspaceShared) -> Decision {
    let version = keyspace.version.load_full();
    let specs = &version.body.plan().levels;
    let order = Order::of(keyspace);
    let mut levels = vec![PlaceFigures::of(&Units(&version.body.units()), &specs[0])];
    let below = version.body.numbered_levels();
    levels
        .extend(below.map(|(number, level)| PlaceFigures::of(&Containers { level, order }, &specs[number])));
    let position = |chosen: Place| {
        let all = levels.iter().enumerate();
        let mut all = all.flat_map(|(number, places)| (0..places.len()).map(move |place| (number, place)));
        all.find(|&(number, place)| place_of(&version, number, place) == chosen)
    };
    let chosen = standing(shared, keyspace).due.and_then(|due| position(due.place));
    let holding = holding(shared, keyspace, &version, shared.memory.budget().segment_bytes);
    Decision { holding, levels, chosen }
}

/// What to merge next so that finally all items are in one run of each keyspace's last level, or `None` if they are.
pub(crate) fn pick_any(shared: &Shared) -> Option<Due> {
    shared.all_keyspaces().iter().find_map(|keyspace| {
        let version = keyspace.version.load();
        let levels = &version.body;
        let place = any_above_last(keyspace, levels).or_else(|| {
            let last = levels.last_level();
            let pile = levels.level(last).containers().iter().find(|container| container.tables.len() > 1)?;
            Some(Place::Container { level: last, range: pile.range })
        })?;
        Some(Due { keyspace: keyspace.clone(), place, pressure: 0.0, collects: false })
    })
}

/// What to merge next so that finally all items of a keyspace are in its last level, or `None` if they are.
pub(crate) fn pick_of(keyspace: &Arc<KeyspaceShared>) -> Option<Due> {
    let place = any_above_last(keyspace, &keyspace.version.load().body)?;
    Some(Due { keyspace: keyspace.clone(), place, pressure: 0.0, collects: false })
}

/// The runs of a keyspace, if some of their items come from log segments before this one.
pub(crate) fn pick_runs_before(keyspace: &Arc<KeyspaceShared>, segment: SegmentId) -> Option<Due> {
    let version = keyspace.version.load();
    let sections = || version.body.run_sections();
    if !sections().any(|section| section.section.segments().newest < segment) {
        return None;
    }
    let fullest = version.body.units().into_iter().max_by_key(|unit| unit.items)?;
    Some(Due { keyspace: keyspace.clone(), place: Place::Unit(fullest), pressure: 0.0, collects: false })
}

fn any_above_last(keyspace: &KeyspaceShared, levels: &Levels) -> Option<Place> {
    if let Some(fullest) = levels.units().into_iter().max_by_key(|unit| unit.items) {
        return Some(Place::Unit(fullest));
    }
    let above_last = levels.numbered_levels().filter(|&(number, _)| number < levels.last_level());
    above_last.into_iter().find_map(|(number, level)| next_of(number, level, Order::of(keyspace)))
}

/// The densest container of the level, or `None` if it is empty.
fn next_of(number: usize, level: &Level, order: Order) -> Option<Place> {
    let densest = densest(&Containers { level, order })?;
    Some(place_in(number, &level.containers()[densest]))
}

fn place_in(level: usize, container: &Container<PlacedTable>) -> Place {
    Place::Container { level, range: container.range }
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

/// What the keyspace holds, as far as the bounds of its levels follow from it.
fn holding(shared: &Shared, keyspace: &KeyspaceShared, version: &Version, segment_bytes: u64) -> Holding {
    let levels = &version.body;
    let in_level = |level: &Level| level.containers().iter().map(obsolete_in).sum::<f64>();
    let mut obsolete = vec![levels.garbage_estimate()];
    obsolete.extend(levels.levels().iter().map(in_level));
    Holding {
        young_items: levels.run_items() as f64,
        items_below: levels.level_items() as f64,
        obsolete,
        freeze_items: freeze_items(version, segment_bytes) as f64,
        units: f64::from(1 << keyspace.run_shard_bits(version.active())),
        expected_items: shared.settings.expected_items as f64,
        young_items_max: young_items_max(shared, version),
    }
}

/// Items of the youngest level for whose filters and indexes the levels below leave memory. Keyspaces share the limit
/// by their numbers of items; the row cache has what is left. Without this bound, a limit would be kept by dropping
/// indexes, and lookups would read instead.
fn young_items_max(shared: &Shared, version: &Version) -> f64 {
    let bound = shared.memory.index.bound();
    if bound == u64::MAX {
        return f64::INFINITY;
    }
    let levels = &version.body;
    let wanted = |sections: &mut dyn Iterator<Item = &Arc<Section>>| {
        sections.fold((0, 0), |(items, bytes), section| {
            (items + section.item_count(), bytes + section.index_bytes_wanted())
        })
    };
    let (young_items, young_bytes) = wanted(&mut levels.run_sections().map(|section| &section.section));
    let (_, all_bytes) = wanted(&mut levels.sections());
    if young_bytes == 0 {
        return f64::INFINITY;
    }
    let everywhere: u64 = shared.all_keyspaces().iter().map(|keyspace| keyspace.version.load().items()).sum();
    let share = version.items() as f64 / everywhere.max(version.items()).max(1) as f64;
    let bytes_max = bound.saturating_sub(shared.memory.index.table_bytes()) as f64 * share * YOUNG_SHARE;
    let below = all_bytes.saturating_sub(young_bytes) as f64;
    (bytes_max - below).max(0.0) * young_items as f64 / young_bytes as f64
}

/// Items of one freeze: as many as the log's index has room for, or as fit in a segment if that is less. Where runs
/// accumulate there are many shards, and under a memory limit segments are small: the index alone would give several
/// times too many.
fn freeze_items(version: &Version, segment_bytes: u64) -> u64 {
    let by_index = (version.active().entries_max().planned() as u64) << version.active().shard_bits();
    let sections = version.body.sections().map(|section| (section.item_count(), section.used_bytes()));
    let (items, bytes) = sections.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    by_index.min((segment_bytes / item_bytes).max(1))
}
