//! Changes of plans in the simulation, which must not change the results of reads.

use std::cell::Cell;

use alluvium_model::{
    ChainedDirectory, ChainedSpec, Filter, Growth, Index, LevelSpec, LevelsPlan, LogSpec, Plan,
};
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

/// Number of random plans of chains.
const CHAINED_PLANS: usize = 3;
/// Number of random plans of each kind, in addition to the named ones.
const RANDOM_PLANS: usize = 4;

impl Plans {
    /// Half of all databases change their plans: among `own`, the named ones that the engine executes, and random ones,
    /// all with shards and logs as small as those of `own`.
    pub fn random(rng: &mut StdRng, own: &LevelsPlan, semi_sorted: &LevelsPlan) -> Self {
        if rng.random() {
            return Self::default();
        }
        let sized = |levels| Plan::Levels(LevelsPlan { levels, ..own.clone() });
        let named =
            || Plan::NAMES.iter().filter_map(|name| LevelsPlan::try_from(Plan::named(name).ok()?).ok());
        let young = LevelsPlan::silt().levels[0];
        let mut hashed = vec![own.clone().into()];
        hashed.extend(named().filter(|plan| plan.check_executable().is_ok()).map(|plan| sized(small(plan))));
        hashed.extend((0..RANDOM_PLANS).map(|_| sized(random_levels(rng, young))));
        // Changes of the index alone, which rewrite no table.
        let reindexed = (0..RANDOM_PLANS).map(|_| sized(reindexed(rng, &own.levels)));
        hashed.extend(reindexed.filter(|plan: &Plan| plan.check_executable().is_ok()));
        hashed.extend((0..CHAINED_PLANS).map(|_| random_chained(rng, own)));
        let mut of_prefixes = vec![semi_sorted.clone().into()];
        let suits = |plan: &LevelsPlan| plan.check_executable_semi_sorted().is_ok();
        of_prefixes.extend(named().filter(suits).map(|plan| sized(small(plan))));
        of_prefixes.extend((0..RANDOM_PLANS).map(|_| sized(semi_sorted_levels(rng))));
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

/// A plan of chains, with logs as small as those of `own`.
pub(super) fn random_chained(rng: &mut StdRng, own: &LevelsPlan) -> Plan {
    let directory = match rng.random() {
        true => ChainedDirectory::Base,
        false => ChainedDirectory::Enhanced { filter_bits: rng.random_range(1..9) },
    };
    let spec = ChainedSpec {
        directory,
        garbage_share_max: rng.random_range(0.05..0.6),
        pointer_bytes: rng.random_range(4..6),
        walk_reads_max: [None, Some(0), Some(1)][rng.random_range(0..3)],
        ..ChainedSpec::of_length([0.5, 1.0, 3.0, 10.0][rng.random_range(0..4)])
    };
    let log = LogSpec { chained: Some(spec), ..own.log };
    Plan::Levels(LevelsPlan { log, ..own.clone() })
}

/// The plan's levels, made so small that some hundred items fill them.
fn small(plan: LevelsPlan) -> Vec<LevelSpec> {
    let mut levels = plan.levels;
    for level in &mut levels {
        if let Growth::Tiering { runs_max, .. } = &mut level.growth {
            *runs_max = (*runs_max / 4).max(2);
        }
    }
    levels
}

/// The same levels with other indexes and fragments where tables can have them.
fn reindexed(rng: &mut StdRng, levels: &[LevelSpec]) -> Vec<LevelSpec> {
    let mut levels = levels.to_vec();
    for level in &mut levels {
        let takes_fragments = matches!(level.filter, Filter::None | Filter::Fragments { .. });
        (level.filter, level.index) = match (level.index, rng.random_range(0..4)) {
            (Index::Implicit | Index::ThreeLevel, _) => continue,
            (_, 0) if takes_fragments => {
                (Filter::Fragments { bits: rng.random_range(1..12) }, Index::TrieDense)
            }
            (_, 1) => (level.filter, Index::TrieDense),
            (_, 2) if takes_fragments => (Filter::None, Index::Trie),
            (_, _) if takes_fragments => (Filter::None, Index::Fences),
            (_, 2) => (level.filter, Index::Trie),
            _ => (level.filter, Index::Fences),
        };
    }
    levels
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
