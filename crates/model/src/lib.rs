//! Plans of storage layouts, and (as this crate grows) what they cost.
//!
//! Architecture invariant: this crate knows no files, threads or clocks.
#![forbid(unsafe_code)]

pub mod plan;

pub use plan::{
    ChainedSpec, Filter, Growth, Index, LevelSpec, LogSpec, Plan, PlanError, Sharding, TableLayout,
};
