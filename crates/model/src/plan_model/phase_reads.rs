//! Reads of gets between two phases: computed as in [`PlanModel::cost`](super::PlanModel::cost), but for the runs that
//! levels hold now instead of the average.

use super::level_state::LevelState;
use super::phases::Phases;
use crate::models::{Lookup, Stage};

impl Phases<'_> {
    /// Reads for a get of a present key, all equally likely, with all filters and indexes in memory.
    pub fn reads_per_get(&self) -> f64 {
        self.lookup().reads_per_get()
    }

    /// Reads for a get of an absent key, with all filters and indexes in memory.
    pub fn reads_per_miss(&self) -> f64 {
        self.lookup().reads_per_miss()
    }

    fn lookup(&self) -> Lookup {
        let mut found = self.found_in_log();
        let mut lookup = Lookup { stages: vec![Stage::in_memory(found)] };
        for (number, (spec, level)) in self.levels_by_spec().into_iter().enumerate() {
            let met = level.met(self.writes());
            found += met.found;
            let state = self.memory().state(number, level, self.writes());
            let state = LevelState { occupied: met.occupied, younger: met.younger, ..state };
            lookup.stages.push(self.model().stage(spec, &state, found, (1.0, 1.0)));
        }
        lookup
    }
}
