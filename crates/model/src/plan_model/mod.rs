//! What a plan costs: one model for all plans, of which the papers' designs are special cases.
//!
//! Beyond the papers, it counts bytes instead of items, with log and page overheads; lets the store grow; deletes;
//! varies item sizes; keeps only part of filters and indexes in memory; and puts a cache in front.
//!
//! Limits: requests are independent of each other; all items are of one size class; compaction keeps up with writes.

mod buckets;
mod chained_log;
mod chained_phases;
mod covering;
mod devices;
mod evaluate;
mod level_state;
mod parts;
mod phase_level;
mod phase_memory;
mod phase_reads;
#[cfg(test)]
mod phase_tests;
mod phases;
mod residency;
mod rules;
mod stack;
mod stream;
mod workload;

#[cfg(test)]
mod tests;

pub use chained_phases::ChainedPhases;
pub use devices::young_writes;
pub use evaluate::{LevelCost, PlanCost, PlanModel};
pub use phases::Phases;
pub use rules::Rules;
pub use workload::{GetPopularity, ItemSize, Workload};

pub(crate) use parts::{Amounts, Parts};
