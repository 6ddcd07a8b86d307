//! Plans of storage layouts, and what they cost.
//!
//! [`KeyDistribution`] and its primitives count different keys among requests; [`plan_model`] prices plans with them,
//! and [`planner`] finds the plan that fits a demand. The papers' own models are in the crate `alluvium-papers`.
//!
//! Architecture invariant: this crate knows no files, threads or clocks.
#![forbid(unsafe_code)]

mod error;
pub mod models;
pub mod plan;
pub mod plan_model;
pub mod planner;
pub mod policy;
mod popularity;
mod root;

pub use error::{ModelError, positive, within};
pub use plan::{
    ChainedDirectory, ChainedSpec, Filter, GARBAGE_SHARE_MAX, Growth, Index, LAST_GARBAGE_SHARE_MAX,
    LevelSpec, LevelsPlan, LogSpec, Plan, PlanError, Sharding, TIERS_GARBAGE_SHARE_MAX, TableLayout,
    merge_delay_ns,
};
pub use popularity::{KeyDistribution, KeyGroup, RequestStream};
