//! Discrete simulation of multi-stage designs, in memory and by key numbers, to check the models (Lim's thesis,
//! §4.3.5).
//!
//! Keys are places in a key space that does not depend on popularity. All compaction is done at once when its trigger
//! is met. A simulation applies the rules without any of the models' averages. It takes roughly four bytes of memory
//! for each record stored.

mod containers;
mod engine;
mod leveldb;
mod levels;
mod sets;
mod stages;

pub use containers::TableBytes;
pub use engine::EngineSimulation;
pub use leveldb::LevelDbSimulation;
pub use levels::{LevelsSimulation, Merge};
pub use stages::{StageRule, StagesSimulation};

use alluvium_model::models::Component;

/// What a simulation counted in its measured phase, per write of the user.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedCost {
    /// Records written, by source, under the names that the model of the design uses.
    pub writes: Vec<Component>,
    /// Records in all tables for each key, averaged over the phase.
    pub records_per_key: f64,
    /// Runs over a place, without those of the last level, averaged over the phase.
    pub runs: f64,
}

impl SimulatedCost {
    /// Records written per write of the user.
    pub fn write_amplification(&self) -> f64 {
        self.writes.iter().map(|component| component.amount).sum()
    }
}
