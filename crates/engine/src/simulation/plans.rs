//! Changes of plans in the simulation, which must not change the results of reads.

use std::cell::Cell;

use alluvium_model::{Growth, LogSpec, Plan, Sharding};
use rand::RngExt;
use rand::rngs::StdRng;

use super::faults::Stop;
use super::session::Session;
use super::shape::{random_levels, semi_sorted_levels};
use crate::{Db, Keyspace};

/// The plans among which a simulated database changes; empty if it keeps its own.
#[derive(Debug, Default)]
pub(super) struct Plans {
    hashed: Vec<Plan>,
    semi_sorted: Vec<Plan>,
    /// The plan most recently given to the database, as an index into those of hashed keyspaces.
    last: Cell<usize>,
}

/// Number of random plans of each kind, in addition to the named ones.
const RANDOM_PLANS: usize = 4;

impl Plans {
    /// Half of all databases change their plans: among `own`, the named ones that the engine executes, and random ones,
    /// all with shards and logs as small as those of `own`.
    pub fn random(rng: &mut StdRng, own: &Plan, semi_sorted: &Plan) -> Self {
        let (Plan::Levels { sharding, log, .. }, Plan::Levels { levels, .. }) = (own, &Plan::silt()) else {
            return Self::default();
        };
        if rng.random() {
            return Self::default();
        }
        let small = |plan: &Plan| small(plan, *sharding, *log);
        let named = || Plan::NAMES.iter().filter_map(|name| Plan::named(name).ok());
        let of_random = |levels| Plan::Levels { sharding: *sharding, log: *log, levels };
        let mut hashed = vec![own.clone()];
        hashed.extend(named().filter(Plan::is_executable).map(|plan| small(&plan)));
        hashed.extend((0..RANDOM_PLANS).map(|_| of_random(random_levels(rng, levels[0]))));
        let mut of_prefixes = vec![semi_sorted.clone()];
        let suits = |plan: &Plan| plan.check_executable_semi_sorted().is_ok();
        of_prefixes.extend(named().filter(suits).map(|plan| small(&plan)));
        of_prefixes.extend((0..RANDOM_PLANS).map(|_| of_random(semi_sorted_levels(rng))));
        Self { hashed, semi_sorted: of_prefixes, last: Cell::new(0) }
    }

    /// Whether plans change.
    pub fn change(&self) -> bool {
        !self.hashed.is_empty()
    }

    /// The plan to open the database with: usually the one most recently given to it.
    pub fn to_open_with(&self, rng: &mut StdRng) -> Option<Plan> {
        if !self.change() {
            return None;
        }
        if rng.random_range(0..4) == 0 {
            self.last.set(rng.random_range(0..self.hashed.len()));
        }
        self.hashed.get(self.last.get()).cloned()
    }
}

/// The plan's levels with shards and a log of this size, and levels that some hundred items fill.
fn small(plan: &Plan, sharding: Sharding, log: LogSpec) -> Plan {
    let Plan::Levels { mut levels, .. } = plan.clone() else { unreachable!("it is executed") };
    for level in &mut levels {
        if let Growth::Tiering { runs_max, .. } = &mut level.growth {
            *runs_max = (*runs_max / 4).max(2);
        }
    }
    Plan::Levels { sharding, log, levels }
}

impl Session<'_> {
    /// Gives another plan to the database, or to one of its keyspaces.
    pub(super) fn change_plan(&mut self, db: &Db, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let shape = self.shape;
        let Plans { hashed, semi_sorted, last } = &shape.plans;
        let keyspace = self.rng.random_range(0..keyspaces.len());
        if self.rng.random_range(0..3) > 0 {
            let plan = self.rng.random_range(0..hashed.len());
            last.set(plan);
            return self.quietly("changing the plan", false, || db.change_plan(hashed[plan].clone()));
        }
        let plans = if shape.prefix_rules[keyspace].is_some() { semi_sorted } else { hashed };
        let plan = &plans[self.rng.random_range(0..plans.len())];
        self.quietly("changing a keyspace's plan", false, || keyspaces[keyspace].change_plan(plan))
    }
}
