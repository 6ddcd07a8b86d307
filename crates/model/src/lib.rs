//! Plans of storage layouts, and what they cost.
//!
//! [`KeyDistribution`] and its primitives count different keys among requests; [`models`] are the cost models of the
//! papers built on them; [`optimizer`] finds their cheapest parameters, and [`planner`] the plan that fits a
//! demand.
//!
//! Architecture invariant: this crate knows no files, threads or clocks.
#![forbid(unsafe_code)]

mod error;
pub mod models;
pub mod optimizer;
pub mod plan;
pub mod plan_model;
pub mod planner;
pub mod policy;
mod popularity;
mod root;
pub mod simulator;

pub use error::ModelError;
pub use plan::{
    ChainedSpec, Filter, GARBAGE_SHARE_MAX, Growth, Index, LAST_GARBAGE_SHARE_MAX, LevelSpec, LogSpec, Plan,
    PlanError, Sharding, TIERS_GARBAGE_SHARE_MAX, TableLayout, merge_delay_ns,
};
pub use popularity::{KeyDistribution, KeyGroup};
