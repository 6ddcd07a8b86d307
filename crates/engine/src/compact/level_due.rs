//! Decides when containers of the levels below the youngest are merged.
//!
//! A level that tiers hands on its fullest container when the mean number of its runs exceeds that of evenly staggered
//! containers, from empty to `runs_max`. Containers therefore do not all fill at once, and none waits for others. A
//! leveling level that is larger than its ratio allows hands on its densest container, which is the one handed on
//! longest ago. A last level that tiers merges a container into itself when it has too many runs or too many obsolete
//! versions.

use alluvium_model::{Growth, LAST_GARBAGE_SHARE_MAX, Plan};

use super::due::{PLACE_BYTES_MAX, Place, mean_runs};
use super::old_values::{OldValues, collects, of_container};
use super::repeats::ends_garbage;
use crate::db::KeyspaceShared;
use crate::level::{Container, Level, PlacedTable, Version};

/// How a level stands in relation to its bounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelDue {
    /// The container that is merged next.
    pub place: Place,
    /// Above 1 it is due.
    pub due: f64,
    /// How far the level exceeds its bound, used to slow writers.
    pub pressure: f64,
    /// Whether it is due for obsolete versions that handing on runs would not drop.
    pub collects: bool,
}

/// How the levels below the youngest stand, except those that are empty or unbounded. `room` is the number of items of
/// the full youngest level.
pub(super) fn of_levels(
    order: Order,
    version: &Version,
    room: f64,
    old_values: &OldValues,
) -> impl Iterator<Item = LevelDue> {
    let plan = &version.plan.plan;
    let Plan::Levels { levels: specs, .. } = plan else { unreachable!("the engine refuses chained plans") };
    let last = version.last_level();
    let mut room = room;
    let mut found = Vec::new();
    for ((number, level), spec) in version.numbered_levels().zip(&specs[1..]) {
        found.extend(match spec.growth {
            Growth::Tiering { runs_max, .. } if number == last => of_last_tiering(number, level, runs_max),
            Growth::Tiering { runs_max, .. } => {
                room *= f64::from(runs_max);
                let by_garbage = match ends_garbage(plan, number) {
                    true => {
                        let garbage: f64 = level.containers().iter().map(of_container).sum();
                        garbage / (alluvium_model::GARBAGE_SHARE_MAX * version.level_items() as f64).max(1.0)
                    }
                    false => old_values.pressure(number),
                };
                let collects = collects(plan, number);
                of_tiering(number, level, order, runs_max, by_garbage)
                    .map(|due| LevelDue { collects: due.collects && collects, ..due })
            }
            Growth::Leveling { .. } if number == last => None,
            Growth::Leveling { ratio } => {
                room *= ratio;
                of_leveling(number, level, order, room)
            }
        });
    }
    found.into_iter()
}

/// The densest container of the level, or `None` if it is empty.
pub(super) fn next_of(number: usize, level: &Level, order: Order) -> Option<Place> {
    most(level, |container| order.density(container)).map(|container| place(number, container))
}

fn place(level: usize, container: &Container<PlacedTable>) -> Place {
    Place::Container { level, range: container.range }
}

/// How containers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Hashes are uniform, and the size of a container is its share of the hash space.
    Hashed,
    /// Containers were cut to hold equal amounts, regardless of their share of the hash space.
    SemiSorted,
}

impl Order {
    pub fn of(keyspace: &KeyspaceShared) -> Self {
        if keyspace.hasher.is_semi_sorted() { Self::SemiSorted } else { Self::Hashed }
    }

    /// The size of the container.
    fn span(self, container: &Container<PlacedTable>) -> f64 {
        match self {
            Self::Hashed => container.span(),
            Self::SemiSorted => 1.0,
        }
    }

    fn density(self, container: &Container<PlacedTable>) -> f64 {
        container.items() / self.span(container)
    }
}

/// The container with the largest `weight`.
fn most(level: &Level, weight: impl Fn(&Container<PlacedTable>) -> f64) -> Option<&Container<PlacedTable>> {
    let weighed = level.containers().iter().map(|container| (weight(container), container));
    weighed.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, container)| container)
}

fn of_tiering(
    number: usize,
    level: &Level,
    order: Order,
    runs_max: u32,
    by_garbage: f64,
) -> Option<LevelDue> {
    let runs = |container: &Container<PlacedTable>| container.tables.len() as f64;
    let tallest = most(level, runs)?;
    let runs_max = f64::from(runs_max);
    let containers = level.containers();
    let span = |container: &Container<PlacedTable>| match order {
        Order::Hashed => container.span(),
        Order::SemiSorted => 1.0 / containers.len() as f64,
    };
    let covered: f64 = containers.iter().map(span).sum();
    let mean: f64 = containers.iter().map(|container| runs(container) * span(container)).sum();
    let mean_max = mean_runs(runs_max, containers.len() as f64 / covered);
    // To merge less than half of the runs would never let them accumulate.
    let is_worth_it = runs(tallest) >= (runs_max / 2.0 + 1.0).floor().max(2.0);
    let by_mean = if is_worth_it { mean / mean_max } else { 0.0 };
    let by_height = runs(tallest) / (runs_max - 0.5);
    let (place_of_runs, by_runs) = (place(number, tallest), by_mean.max(by_height));
    let heaviest = most(level, |container| if runs(container) > 1.0 { container.bytes() } else { 0.0 })?;
    let by_bytes = if runs(heaviest) > 1.0 { heaviest.bytes() / PLACE_BYTES_MAX as f64 } else { 0.0 };
    let foulest = most(level, of_container)?;
    let others = [(heaviest, by_bytes, false), (foulest, by_garbage, true)];
    let (place, due, collects) = others
        .into_iter()
        .map(|(container, due, collects)| (place(number, container), due, collects))
        .filter(|&(_, due, _)| due > 1.0)
        .fold((place_of_runs, by_runs, false), |most, other| if other.1 > most.1 { other } else { most });
    let pressure = by_mean.max(runs(tallest) / runs_max).max(by_garbage);
    Some(LevelDue { place, due, pressure, collects })
}

fn of_last_tiering(number: usize, level: &Level, runs_max: u32) -> Option<LevelDue> {
    let over = |container: &Container<PlacedTable>| {
        let runs = container.tables.len();
        if runs < 2 {
            return 0.0;
        }
        let by_garbage = of_container(container) / container.items().max(1.0) / LAST_GARBAGE_SHARE_MAX;
        let by_runs = runs as f64 / (f64::from(staggered(runs_max, container.range.low)) - 0.5);
        by_garbage.max(by_runs)
    };
    let worst = most(level, over)?;
    let runs = worst.tables.len() as f64 / f64::from(runs_max);
    Some(LevelDue { place: place(number, worst), due: over(worst), pressure: runs, collects: false })
}

/// Maximum number of runs of the container that begins at `low`: between three quarters of `runs_max` and all of it, so
/// that not all containers are full at once.
fn staggered(runs_max: u32, low: u128) -> u32 {
    let place = (low >> 64) as u64 ^ low as u64;
    let spread = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let less = (spread * u64::from(runs_max / 4 + 1)) >> 32;
    (runs_max - less as u32).max(2)
}

fn of_leveling(number: usize, level: &Level, order: Order, items_max: f64) -> Option<LevelDue> {
    let densest = most(level, |container| order.density(container))?;
    let pressure = level.items() as f64 / items_max.max(1.0);
    Some(LevelDue { place: place(number, densest), due: pressure, pressure, collects: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_full_at_different_numbers_of_runs() {
        for runs_max in [2u32, 3, 8, 128] {
            let bounds: Vec<u32> = (0..64u128).map(|place| staggered(runs_max, place << 122)).collect();
            assert!(
                bounds.iter().all(|&bound| bound >= (runs_max - runs_max / 4).max(2) && bound <= runs_max)
            );
            let different: std::collections::BTreeSet<_> = bounds.into_iter().collect();
            assert!(different.len() as u32 > runs_max / 8, "{different:?}");
        }
    }
}
