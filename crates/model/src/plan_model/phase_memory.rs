//! [`PhaseMemory`]: memory of filters and indexes during a phase.
//!
//! Computed as in [`PlanModel::cost`](super::PlanModel::cost) for a store of constant size, but from the records and
//! runs that levels hold at one moment of [`Phases`](super::Phases).

use super::evaluate::PlanModel;
use super::level_state::LevelState;
use super::phase_level::{PhaseLevel, Writes};
use super::stack::Stack;
use crate::plan::{Filter, Growth, LevelSpec};

/// Number of tables into which a place of one run is cut.
const TABLES_OF_MERGE: f64 = 11.0;

/// Memory in the second half of a phase, summed over its writes, and the part of it that only freezes change.
#[derive(Debug, Default)]
pub(super) struct PhaseMemory {
    /// Number of the write at which the second half begins.
    middle: f64,
    /// Bytes per item times writes.
    item_byte_writes: f64,
    writes: f64,
    /// Memory of the index of a log.
    log_bytes: f64,
    /// Share of the entries for which a filter made from a log's index is made that are taken.
    crowding: f64,
    /// Parts of each run of the youngest level.
    sections_a_run: f64,
}

impl PhaseMemory {
    /// Begins a phase whose second half begins with write `middle`.
    pub fn begin(&mut self, middle: f64) {
        (self.middle, self.item_byte_writes, self.writes) = (middle, 0.0, 0.0);
    }

    /// Begins a log of this shape.
    pub fn set_log(&mut self, model: &PlanModel, stack: &Stack) {
        self.log_bytes = stack.log_index_bytes(&model.rules);
        (self.crowding, self.sections_a_run) = (stack.log_crowding(), stack.shards());
    }

    /// Notes what the log and the levels took during the last `last` writes. `frozen_share` is the share of that time
    /// in which there was also a frozen log.
    pub fn note(&mut self, writes: &Writes, last: f64, frozen_share: f64, bytes: impl FnOnce(&Self) -> f64) {
        if writes.now() > self.middle {
            let bytes = bytes(self) + frozen_share * self.log_bytes;
            self.item_byte_writes += last * bytes / writes.present();
            self.writes += last;
        }
    }

    /// The mean over the second half, for each item present at the time.
    pub fn mean_bytes_per_item(&self) -> f64 {
        if self.writes > 0.0 { self.item_byte_writes / self.writes } else { 0.0 }
    }

    /// The state of level `number` now, except for how keys are found in it.
    pub fn state(&self, number: usize, level: &PhaseLevel, writes: &Writes) -> LevelState {
        let state = LevelState::of_runs(level.items(writes), level.runs_mean());
        let state = LevelState { newest_share: level.newest_share(writes), ..state };
        if number > 0 {
            return state;
        }
        LevelState { sections: state.runs * self.sections_a_run, filter_crowding: self.crowding, ..state }
    }

    /// Memory of one log and of what the levels hold now.
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
