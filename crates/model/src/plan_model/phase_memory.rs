//! [`PhaseMemory`]: memory of filters and indexes while a phase goes on.
//!
//! As [`PlanModel::cost`](super::PlanModel::cost) has it for a store that goes on as it is, of the records and runs
//! that levels hold at one moment of [`Phases`](super::Phases).

use super::evaluate::PlanModel;
use super::phase_level::{PhaseLevel, Writes};
use super::stack::{LevelState, Stack};
use crate::plan::{Filter, Growth, LevelSpec};

/// Tables into which a place of one run is cut.
const TABLES_OF_MERGE: f64 = 11.0;

/// Memory in the second half of a phase, summed up over its writes, and what of it only freezes change.
#[derive(Debug, Default)]
pub(super) struct PhaseMemory {
    /// Writes at which the second half begins.
    middle: f64,
    /// Bytes an item times writes.
    item_byte_writes: f64,
    writes: f64,
    /// Memory of the index of a log.
    log_bytes: f64,
    /// Share of the entries that a filter made of a log's index is made for, which are taken.
    crowding: f64,
    /// Parts that each run of the youngest level consists of.
    sections_a_run: f64,
}

impl PhaseMemory {
    /// A phase begins, whose second half begins with that write.
    pub fn begin(&mut self, middle: f64) {
        (self.middle, self.item_byte_writes, self.writes) = (middle, 0.0, 0.0);
    }

    /// A log of this shape begins.
    pub fn set_log(&mut self, model: &PlanModel, stack: &Stack) {
        self.log_bytes = stack.log_index_bytes(&model.rules);
        (self.crowding, self.sections_a_run) = (stack.log_crowding(), stack.shards());
    }

    /// Notes what the log and the levels took during the last so many writes, for which share of the time there was a
    /// frozen log, too.
    pub fn note(&mut self, writes: &Writes, last: f64, frozen_share: f64, bytes: impl FnOnce(&Self) -> f64) {
        if writes.now() > self.middle {
            let bytes = bytes(self) + frozen_share * self.log_bytes;
            self.item_byte_writes += last * bytes / writes.present();
            self.writes += last;
        }
    }

    /// The mean over the second half, for each item that was there at the time.
    pub fn mean_bytes_per_item(&self) -> f64 {
        if self.writes > 0.0 { self.item_byte_writes / self.writes } else { 0.0 }
    }

    /// The level of this number as it is now, but for how keys are found in it.
    pub fn state(&self, number: usize, level: &PhaseLevel, writes: &Writes) -> LevelState {
        let state = LevelState::of_runs(level.items(writes), level.runs_mean());
        if number > 0 {
            return state;
        }
        LevelState { sections: state.runs * self.sections_a_run, filter_crowding: self.crowding, ..state }
    }

    /// Memory with one log and what the levels hold now.
    pub fn bytes_now(&self, model: &PlanModel, levels: &[(&LevelSpec, &PhaseLevel)], writes: &Writes) -> f64 {
        let of_level = |(number, (spec, level)): (usize, &(&LevelSpec, &PhaseLevel))| {
            let state = self.state(number, level, writes);
            let LevelState { records, runs, .. } = state;
            let in_filters = match spec.filter {
                Filter::MultiLevelCuckoo { .. } => level.keys(writes),
                _ => records,
            };
            let tables = match spec.growth {
                _ if number == 0 => 0.0,
                Growth::Tiering { .. } => 1.0,
                Growth::Leveling { .. } => TABLES_OF_MERGE,
            } * runs
                * level.places() as f64;
            model.filter_bytes(spec, &state, in_filters)
                + model.index_bytes(spec, &state, records)
                + tables * model.rules.section_bytes
        };
        self.log_bytes + levels.iter().enumerate().map(of_level).sum::<f64>()
    }
}
