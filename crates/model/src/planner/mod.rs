//! The plan that fits a demand: what is stored and done, on which device, within which limits ([`Demand`]).
//!
//! [`plan`] looks at every plan of a [`Space`]. It returns the best one, the best one that the engine executes today,
//! all plans that no other beats in writes, reads and memory, and the reasons in words.

mod choice;
mod demand;
mod device;
mod explain;
mod figures;
mod frontier;
mod search;
mod space;

#[cfg(test)]
mod tests;

pub use choice::{NamedCandidate, Planned, plan, plan_executable};
pub use demand::{Demand, Limits, OperationMix, Weights, items_expected};
pub use device::{DeviceFigures, ReadRate};
pub use figures::{Candidate, Figures};
pub use space::Space;
