//! [`LevelsState`]: the plan, runs and levels of a keyspace, as the manifest names them.

use std::collections::BTreeSet;

use alluvium_base::TableId;

use super::plan_state::PlanState;
use crate::level::{Container, relevelled};

/// What a [`Levels`](crate::level::Levels) is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LevelsState {
    pub plan: PlanState,
    /// Old to young.
    pub runs: Vec<RunState>,
    /// The levels below the youngest, level 1 first: their containers, ascending and disjoint.
    pub levels: Vec<Vec<Container<PlacedTableState>>>,
}

/// A run of hash sections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunState {
    pub file: TableId,
    pub shard_bits: u32,
    pub repeats: f64,
    pub dropped: BTreeSet<u32>,
}

/// A table over a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlacedTableState {
    pub file: TableId,
    pub repeats: f64,
}

impl LevelsState {
    /// Levels without tables.
    pub fn new(plan: PlanState) -> Self {
        let levels = vec![Vec::new(); plan.levels()];
        Self { plan, runs: Vec::new(), levels }
    }

    /// Whether there are no tables.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.levels.iter().all(Vec::is_empty)
    }

    /// Numbers of the table files in use. Some may be listed several times.
    pub fn files(&self) -> impl Iterator<Item = TableId> {
        let placed = self.levels.iter().flatten().flat_map(|container| &container.tables);
        self.runs.iter().map(|run| run.file).chain(placed.map(|table| table.file))
    }

    /// Puts the tables into the levels of another plan.
    pub fn set_plan(&mut self, plan: PlanState) {
        self.levels = relevelled(&self.levels, plan.levels());
        self.plan = plan;
    }
}
