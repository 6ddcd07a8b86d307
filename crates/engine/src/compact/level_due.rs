//! Decides when containers of the levels below the youngest are merged.
//!
//! A level that tiers hands on its fullest container when the mean number of its runs exceeds that of evenly staggered
//! containers, from empty to `runs_max`. Containers therefore do not all fill at once, and none waits for others. A
//! leveling level that is larger than its ratio allows hands on its densest container, which is the one handed on
//! longest ago. A last level that tiers merges a container into itself when it has too many runs or too many obsolete
//! versions.

use alluvium_model::policy::{self, Shape};
use alluvium_model::{Growth, Plan};

use super::old_values::{OldValues, collects, of_container};
use super::repeats::ends_garbage;
use crate::core::KeyspaceShared;
use crate::level::{Container, Level, Place, PlacedTable, Version};

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
        let shape = Containers { level, order };
        let choice = match spec.growth {
            Growth::Tiering { runs_max, .. } if number == last => policy::of_last_tiering(&shape, runs_max),
            Growth::Tiering { runs_max, .. } => {
                room *= f64::from(runs_max);
                let by_obsolete = match ends_garbage(plan, number) {
                    true => {
                        let garbage: f64 = level.containers().iter().map(of_container).sum();
                        garbage / (alluvium_model::GARBAGE_SHARE_MAX * version.level_items() as f64).max(1.0)
                    }
                    false => old_values.pressure(number),
                };
                policy::of_tiering(&shape, runs_max, by_obsolete, collects(plan, number))
            }
            Growth::Leveling { .. } if number == last => None,
            Growth::Leveling { ratio } => {
                room *= ratio;
                policy::of_leveling(&shape, room)
            }
        };
        found.extend(choice.map(|choice| LevelDue {
            place: place(number, &level.containers()[choice.place]),
            due: choice.pressure,
            pressure: choice.slowing,
            collects: choice.collects,
        }));
    }
    found.into_iter()
}

/// The densest container of the level, or `None` if it is empty.
pub(super) fn next_of(number: usize, level: &Level, order: Order) -> Option<Place> {
    let densest = policy::densest(&Containers { level, order })?;
    Some(place(number, &level.containers()[densest]))
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
}

/// Containers of a level, as the policy sees them.
struct Containers<'a> {
    level: &'a Level,
    order: Order,
}

impl Shape for Containers<'_> {
    fn places(&self) -> usize {
        self.level.containers().len()
    }

    fn runs(&self, place: usize) -> f64 {
        self.level.containers()[place].tables.len() as f64
    }

    fn items(&self, place: usize) -> f64 {
        self.level.containers()[place].items()
    }

    fn bytes(&self, place: usize) -> f64 {
        self.level.containers()[place].bytes()
    }

    fn obsolete(&self, place: usize) -> f64 {
        of_container(&self.level.containers()[place])
    }

    fn span(&self, place: usize) -> f64 {
        match self.order {
            Order::Hashed => self.level.containers()[place].span(),
            Order::SemiSorted => 1.0 / self.places() as f64,
        }
    }

    fn runs_full(&self, place: usize, runs_max: u32) -> f64 {
        f64::from(staggered(runs_max, self.level.containers()[place].range.low))
    }

    fn items_of_level(&self) -> f64 {
        self.level.items() as f64
    }
}

/// Maximum number of runs of the container that begins at `low`: between three quarters of `runs_max` and all of it, so
/// that not all containers are full at once.
fn staggered(runs_max: u32, low: u128) -> u32 {
    let place = (low >> 64) as u64 ^ low as u64;
    let spread = place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let less = (spread * u64::from(runs_max / 4 + 1)) >> 32;
    (runs_max - less as u32).max(2)
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
