//! Discrete simulation of multi-stage designs, in memory and by key numbers, to check the models against (Lim's thesis,
//! §4.3.5).
//!
//! Keys are places in a key space that popularity knows nothing of. All compaction is done at once when its trigger is
//! met. A simulation does what the rules say, with none of the models' averages, and costs about as much memory as four
//! bytes for each record stored.

mod engine;
mod leveldb;
mod requests;
mod sets;
mod stages;

pub use engine::EngineSimulation;
pub use leveldb::LevelDbSimulation;
pub use requests::RequestStream;
pub use stages::{StageRule, StagesSimulation};

use crate::models::Component;

/// What a simulation counted in its measured phase, per write of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedCost {
    /// Records written, by source, under the names that the model of the design uses.
    pub writes: Vec<Component>,
    /// Records in all tables for each key, averaged over the phase.
    pub records_per_key: f64,
    /// Runs over a place that are not the last level's, averaged over the phase.
    pub runs: f64,
}

impl SimulatedCost {
    /// Records written per write of the user.
    pub fn write_amplification(&self) -> f64 {
        self.writes.iter().map(|component| component.amount).sum()
    }
}
