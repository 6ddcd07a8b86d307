//! [`PlanDecision`]: why a plan was kept or replaced.

use serde::{Deserialize, Serialize};

/// The decision that was made when the data had outgrown a plan, or when another share of the gets was of absent keys.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanDecision {
    /// The keyspace's name.
    pub keyspace: String,
    /// The time of the decision, in milliseconds since 1970.
    pub at_ms: u64,
    /// Number of items present.
    pub items: u64,
    /// Mean bytes of key and value.
    pub item_bytes: f64,
    /// Number of items for which the decision was made. The next one is due when there are half as many again.
    pub items_planned: u64,
    /// Share of absent keys among gets for which the decision was made: that of [`crate::Builder::workload`], or that
    /// of the gets that tables have answered since the last decision.
    pub absent_share: f64,
    /// The plan until then, in one line.
    pub from: String,
    /// The best plan for that number of items, in one line; `None` if the planner refused.
    pub best: Option<String>,
    /// Predicted device time of an operation, in microseconds: under the plan until then, and under the best one.
    pub operation_us: (f64, f64),
    /// Predicted bytes of memory per item for filters and indexes: under the plan until then, and under the best one.
    pub memory_bytes_per_item: (f64, f64),
    /// What more memory for filters and indexes would bring, if absent keys cost reads and it would pay.
    pub proposal: Option<String>,
    /// Whether the plan was changed to the best one.
    pub is_changed: bool,
    /// The reason for changing or keeping the plan.
    pub reason: String,
}
