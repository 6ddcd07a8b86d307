//! Races planted in the engine, each of which the threaded simulation detects.

use super::super::{Failure, fail};
use super::world::{ITERATE, Shape};
use crate::Durability;
use crate::environment::PlantedBugs;
use crate::planted_race::PlantedRace;

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

pub(super) fn plant(name: Option<&str>) -> Result<PlantedBugs, Failure> {
    let Some(name) = name else { return Ok(PlantedBugs::default()) };
    match PlantedRace::ALL.into_iter().find(|race| race.name() == name) {
        Some(race) => Ok(PlantedBugs { race: Some(race), ..PlantedBugs::default() }),
        None => fail(format!("no race is named {name:?}; known: {}", PLANTED_BUGS.join(", "))),
    }
}
