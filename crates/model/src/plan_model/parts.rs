//! [`Parts`]: what each level of a plan adds to its costs, so that a search can choose layouts level by level.
//!
//! How levels fill and empty follows from the log and the growths alone. Table, filter and index of a level then change
//! only what that level adds to writes, reads and memory: all costs are sums.

use super::evaluate::{PlanCost, PlanModel};
use super::stack::Stack;
use super::stream::WriteStream;
use crate::error::ModelError;
use crate::plan::LevelSpec;

/// What a part of a plan adds. Sums over parts equal what [`PlanModel::cost`] gives for a store of constant size with
/// enough memory for all filters and indexes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amounts {
    /// Bytes written to the device for each byte that the user writes.
    pub writes: f64,
    /// Reads for a get of a present key.
    pub reads_per_get: f64,
    /// Reads for a get of an absent key.
    pub reads_per_miss: f64,
    /// Reads that a put waits for.
    pub reads_per_put: f64,
    /// Bytes of memory per live item.
    pub memory: f64,
    /// Bytes on the device for each live byte.
    pub space: f64,
}

impl Amounts {
    /// The smaller amount of the two, for each cost.
    pub fn least(self, other: Self) -> Self {
        Self {
            writes: self.writes.min(other.writes),
            reads_per_get: self.reads_per_get.min(other.reads_per_get),
            reads_per_miss: self.reads_per_miss.min(other.reads_per_miss),
            reads_per_put: self.reads_per_put.min(other.reads_per_put),
            memory: self.memory.min(other.memory),
            space: self.space.min(other.space),
        }
    }

    /// The amounts of a whole plan.
    pub fn of_cost(plan: &PlanCost) -> Self {
        let cost = &plan.cost;
        Self {
            writes: cost.write_amplification(),
            reads_per_get: cost.reads_per_get,
            reads_per_miss: cost.reads_per_miss,
            reads_per_put: plan.reads_per_put,
            memory: cost.bytes_per_item(),
            space: cost.space_amplification(),
        }
    }
}

impl std::ops::Add for Amounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            writes: self.writes + other.writes,
            reads_per_get: self.reads_per_get + other.reads_per_get,
            reads_per_miss: self.reads_per_miss + other.reads_per_miss,
            reads_per_put: self.reads_per_put + other.reads_per_put,
            memory: self.memory + other.memory,
            space: self.space + other.space,
        }
    }
}

/// The log and the levels of a plan as they fill and empty. Only the growths of the levels count.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    model: &'a PlanModel,
    stack: Stack,
    /// Share of the gets that the log and the levels up to each one answer; the first entry is the log's.
    found: Vec<f64>,
    /// Share of the gets of present keys that the cache in front does not answer.
    uncached: f64,
    stored: Vec<(f64, f64)>,
    live: f64,
}

impl<'a> Parts<'a> {
    /// The parts of a plan of levels, at the size of the store at the end.
    pub fn new(model: &'a PlanModel) -> Result<Self, ModelError> {
        let workload = &model.workload;
        let stream = WriteStream { keys: workload.keys.clone(), fresh_share: workload.fresh_share };
        let stack = Stack::new(model.plan.as_levels()?, &stream, workload, &model.rules)?;
        let mut found = vec![stream.mean_found(stack.log_interval, workload.gets)];
        for (number, state) in stack.levels.iter().enumerate() {
            let is_last = number + 1 == stack.levels.len();
            let here = if is_last { 1.0 } else { stream.mean_found(state.interval, workload.gets) };
            found.push(here.max(found[number]));
        }
        Ok(Self {
            uncached: 1.0 - model.cached_share(&stream),
            stored: model.stored(&stack),
            live: workload.live_keys(),
            model,
            stack,
            found,
        })
    }

    /// Number of levels that hold anything: fewer than the plan has if the data end earlier.
    pub fn levels(&self) -> usize {
        self.stack.levels.len()
    }

    /// What the log adds.
    pub fn log(&self) -> Amounts {
        let model = self.model;
        Amounts {
            writes: model.log_record_bytes() / model.workload.written_bytes(),
            memory: self.stack.log_indexes_bytes(&model.rules) / self.live,
            space: model.log_space(&self.stack, self.live),
            ..Amounts::default()
        }
    }

    /// What level `number` adds with the table, filter and index of `spec`.
    pub fn level(&self, number: usize, spec: &LevelSpec) -> Amounts {
        let (model, state) = (self.model, &self.stack.levels[number]);
        let stage = model.stage(spec, state, self.found[number + 1], (1.0, 1.0));
        let (records, _) = self.stored[number];
        Amounts {
            writes: model.level_writes(spec, state),
            reads_per_get: self.uncached * stage.reads_per_get(self.found[number]),
            reads_per_miss: stage.reads_per_miss(),
            reads_per_put: 0.0,
            memory: (model.filter_bytes(spec, state, records) + model.index_bytes(spec, state, records))
                / self.live,
            space: model.level_space(spec, self.stored[number], self.live)
                + model.taken_over_bytes(model.filters_taken_over(spec, state) * records)
                    / (self.live * model.workload.item.bytes()),
        }
    }
}
