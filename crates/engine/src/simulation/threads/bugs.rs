//! Races planted in the engine, each of which the threaded simulation detects.

use super::super::{Failure, fail};
use super::world::{
    CHANGE_PLAN, CHECKPOINT, COMPACT, FLUSH, GET, INCREMENT, INGEST, ITERATE, KEYS_MIN, PERSIST, PUT, REMOVE,
    SNAPSHOT, SWAP, Shape, UPDATE, WEIGHTS,
};
use crate::environment::PlantedBugs;
use crate::planted_race::PlantedRace;
use crate::{Durability, LevelsPlan, Plan};

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
        PlantedRace::FollowerTrustsLeader => shape.durability == Durability::Sync,
        PlantedRace::SnapshotWithoutShards => shape.keyspaces.len() > 1,
        // The other numbers of keys have no row cache.
        PlantedRace::RowsWithoutEra => !shape.keys.is_multiple_of(5),
        // Else each commit syncs what hides the dropped items.
        PlantedRace::DropWithoutSync => shape.durability != Durability::Sync,
        _ => true,
    }
}

/// Restricts a shape to what shows the race more often.
pub(super) fn focus(race: PlantedRace, shape: &mut Shape) {
    match race {
        PlantedRace::EndNewChains => {
            // A keyspace gets chains for the first time, or again.
            one_unchained(shape);
            shape.plans.sort_by_key(is_chained);
            raise(shape, &[PUT, CHANGE_PLAN, FLUSH]);
        }
        PlantedRace::ClearUntold => {
            // Chains are cleared when the plan has none any more.
            one_unchained(shape);
            shape.plans.sort_by_key(|plan| !is_chained(plan));
            raise(shape, &[GET, PUT, CHANGE_PLAN, FLUSH]);
            shape.clients = 4;
        }
        PlantedRace::MoveWithoutWitness | PlantedRace::MoveUnsearched => {
            // All keyspaces have chains, and keep them.
            shape.plans.retain(is_chained);
            shape.keyspaces.fill(false);
            shape.weights[CHANGE_PLAN] = 0;
            (shape.clients, shape.keys) = (4, KEYS_MIN);
            raise(shape, &[PUT, REMOVE, FLUSH]);
        }
        PlantedRace::GroupsBesideLog => {
            // Only scans of prefixes make rows of groups.
            shape.keyspaces.fill(true);
            raise(shape, &[PUT, FLUSH, ITERATE]);
        }
        PlantedRace::DropWithoutSync => {
            raise(shape, &[PUT, REMOVE]);
            // These make durable what hides the dropped items.
            [FLUSH, PERSIST, COMPACT, CHECKPOINT].into_iter().for_each(|kind| shape.weights[kind] = 0);
        }
        PlantedRace::DropBesideSnapshots => raise(shape, &[PUT, REMOVE, SNAPSHOT, FLUSH]),
        PlantedRace::FollowerTrustsLeader => {
            shape.clients = 4;
            raise(shape, &[PUT, REMOVE, UPDATE]);
        }
        PlantedRace::IngestWithoutEpoch => {
            // An ingest fills one keyspace: twins in two of them would differ without any race.
            shape.twins_part = true;
            raise(shape, &[INGEST, UPDATE, INCREMENT, SWAP]);
        }
        PlantedRace::SnapshotWithoutShards => raise(shape, &[SNAPSHOT, CHECKPOINT, FLUSH, PERSIST]),
        PlantedRace::RowsWithoutEra => raise(shape, &[GET, PUT, FLUSH]),
        _ => {}
    }
}

/// Hashed keyspaces only, with plans that have chains, and one that has none.
fn one_unchained(shape: &mut Shape) {
    let mut has_unchained = false;
    shape.plans.retain(|plan| is_chained(plan) || !std::mem::replace(&mut has_unchained, true));
    shape.keyspaces.fill(false);
}

fn is_chained(plan: &Plan) -> bool {
    LevelsPlan::try_from(plan.clone()).is_ok_and(|plan| plan.log.chained.is_some())
}

/// Makes operations of these kinds several times as frequent as usual.
fn raise(shape: &mut Shape, kinds: &[usize]) {
    for &kind in kinds {
        shape.weights[kind] = 4 * WEIGHTS[kind];
    }
}

pub(super) fn plant(name: Option<&str>) -> Result<PlantedBugs, Failure> {
    let Some(name) = name else { return Ok(PlantedBugs::default()) };
    match PlantedRace::ALL.into_iter().find(|race| race.name() == name) {
        Some(race) => Ok(PlantedBugs { race: Some(race), ..PlantedBugs::default() }),
        None => fail(format!("no race is named {name:?}; known: {}", PLANTED_BUGS.join(", "))),
    }
}
