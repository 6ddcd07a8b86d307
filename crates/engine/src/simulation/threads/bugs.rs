//! Races planted in the engine, each of which the threaded simulation detects.

use super::super::{Failure, fail};
use super::world::{CHANGE_PLAN, ITERATE, Shape, WEIGHTS};
use crate::environment::PlantedBugs;
use crate::planted_race::PlantedRace;
use crate::{Durability, Plan};

/// The races that can be planted, by name.
pub const PLANTED_BUGS: [&str; PlantedRace::ALL.len()] = {
    let mut names = [""; PlantedRace::ALL.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = PlantedRace::ALL[place].name();
        place += 1;
    }
    names
};

/// Whether the race can have an effect in a database of this shape. The races that few seeds show would else take most
/// of the time in databases that cannot show them.
pub(super) fn may_show(race: PlantedRace, shape: &Shape) -> bool {
    match race {
        // Else each commit syncs what hides the dropped items.
        PlantedRace::DropWithoutSync => shape.durability != Durability::Sync,
        // Only scans of prefixes make rows of groups.
        PlantedRace::GroupsBesideLog => shape.keyspaces.contains(&true) && shape.weights[ITERATE] > 0,
        _ => true,
    }
}

/// Restricts a shape to what shows the race more often.
pub(super) fn focus(race: PlantedRace, shape: &mut Shape) {
    if race == PlantedRace::EndNewChains {
        // A keyspace gets chains for the first time, or again.
        let is_chained = |plan: &Plan| matches!(plan, Plan::Chained(_));
        shape.plans.sort_by_key(is_chained);
        let first_chained = shape.plans.iter().position(is_chained).unwrap_or(0);
        shape.plans.drain(1..first_chained.max(1));
        shape.weights[CHANGE_PLAN] = 4 * WEIGHTS[CHANGE_PLAN];
    }
}

pub(super) fn plant(name: Option<&str>) -> Result<PlantedBugs, Failure> {
    let Some(name) = name else { return Ok(PlantedBugs::default()) };
    match PlantedRace::ALL.into_iter().find(|race| race.name() == name) {
        Some(race) => Ok(PlantedBugs { race: Some(race), ..PlantedBugs::default() }),
        None => fail(format!("no race is named {name:?}; known: {}", PLANTED_BUGS.join(", "))),
    }
}
