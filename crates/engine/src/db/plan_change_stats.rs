//! How far data have followed a change of plan.

use serde::{Deserialize, Serialize};

use crate::compact::left_to_move;
use crate::core::KeyspaceShared;

/// How far the data of a keyspace have followed a change of its plan ([`crate::Db::change_plan`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanChangeStats {
    /// The keyspace's name.
    pub keyspace: String,
    /// The previous plan, in one line.
    pub from: String,
    /// The current plan, in one line.
    pub to: String,
    /// Number of tables still to be rewritten: they are unlike any tables of the plan, or stacked in a level of one
    /// run.
    pub tables_left: usize,
    /// Bytes of their pages.
    pub bytes_left: u64,
    /// The same for each level of the current plan, the youngest first.
    pub levels: Vec<LeftStats>,
}

/// What is still to be rewritten in one level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftStats {
    /// `level` and its number in the plan.
    pub name: String,
    /// Number of tables; for the youngest level, number of sections of runs.
    pub tables_left: usize,
    /// Bytes of their pages.
    pub bytes_left: u64,
}

impl PlanChangeStats {
    /// The figures of this keyspace, if its data have not all followed its plan.
    pub(super) fn of(keyspace: &KeyspaceShared) -> Option<Self> {
        let version = keyspace.version.load();
        let from = version.body.plan_state().before.as_ref()?.to_string();
        let left = left_to_move(&version.body);
        let level = |(number, left): (usize, &crate::compact::Left)| LeftStats {
            name: format!("level {number}"),
            tables_left: left.tables,
            bytes_left: left.bytes,
        };
        Some(Self {
            keyspace: keyspace.name.clone(),
            from,
            to: version.body.plan().to_string(),
            tables_left: left.iter().map(|left| left.tables).sum(),
            bytes_left: left.iter().map(|left| left.bytes).sum(),
            levels: left.iter().enumerate().map(level).collect(),
        })
    }
}
