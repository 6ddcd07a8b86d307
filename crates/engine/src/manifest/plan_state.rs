//! [`PlanState`]: the plan of a keyspace, and how far its data have followed.

use alluvium_model::Plan;
use serde::{Deserialize, Serialize};

/// Who chose a keyspace's plan, and so who may change it. On disk: names never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanSource {
    /// It is the database's: it changes with that.
    #[default]
    Database,
    /// It was planned for what was known of the data, and may be planned anew when there are many more.
    Auto,
    /// It was given for this keyspace alone.
    Own,
}

/// The plan of a keyspace, and how far its data have followed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlanState {
    /// What new tables are made for.
    pub plan: Plan,
    /// How many plans the keyspace had before. Tables say which of them they were made for. The last number there is
    /// stays.
    pub number: u16,
    pub source: PlanSource,
    /// The plan before, as long as there is something that lies as only that one would have it.
    pub before: Option<Plan>,
    /// Of a plan that was made for the data: how many items it was made for.
    pub items_planned: u64,
}

impl PlanState {
    /// The first plan of a keyspace.
    pub fn first(plan: Plan, source: PlanSource) -> Self {
        Self { plan, number: 0, source, before: None, items_planned: 0 }
    }

    /// Whether something may lie otherwise than the plan has it.
    pub fn is_moving(&self) -> bool {
        self.before.is_some()
    }

    /// The state when `plan` takes the place of this one's.
    pub fn followed_by(&self, plan: Plan, source: PlanSource, items_planned: u64) -> Self {
        // Who goes back to where they came from leaves the plan in between.
        let before = match &self.before {
            Some(before) if *before != plan => before,
            _ => &self.plan,
        };
        let before = Some(before.clone());
        Self { plan, number: self.number.saturating_add(1), source, before, items_planned }
    }

    /// The state when everything lies as the plan has it.
    pub fn arrived(&self) -> Self {
        Self { before: None, ..self.clone() }
    }

    /// Levels of tables below the youngest.
    pub fn levels(&self) -> usize {
        match &self.plan {
            Plan::Levels { levels, .. } => levels.len().saturating_sub(1),
            Plan::Chained(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_before_is_the_one_that_data_came_from() {
        let first = PlanState::first(Plan::silt(), PlanSource::Auto);
        let second = first.followed_by(Plan::tiered(), PlanSource::Database, 0);
        assert_eq!((second.number, second.before.as_ref()), (1, Some(&Plan::silt())));
        let third = second.followed_by(Plan::leveled(), PlanSource::Database, 0);
        assert_eq!((third.number, third.before.as_ref()), (2, Some(&Plan::silt())));
        let back = third.followed_by(Plan::silt(), PlanSource::Database, 0);
        assert_eq!((back.number, back.before.as_ref()), (3, Some(&Plan::leveled())));
        assert!(!back.arrived().is_moving() && back.arrived().plan == Plan::silt());
    }
}
