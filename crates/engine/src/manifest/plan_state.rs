//! [`PlanState`]: the plan of a keyspace, and how far its data have followed.

use alluvium_model::LevelsPlan;
use serde::{Deserialize, Serialize};

/// Where a keyspace's plan comes from, and so what may change it. On disk: names never change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlanSource {
    /// The database's plan: it changes with that.
    #[default]
    Database,
    /// Planned for what was known of the data; may be planned anew when the data have grown much.
    Auto,
    /// Given for this keyspace alone.
    Own,
}

/// The plan of a keyspace, and how far its data have followed. On disk: names never change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PlanState {
    /// The plan for which new tables are made, as the engine executes it ([`LevelsPlan::executed`]).
    pub plan: LevelsPlan,
    /// Number of plans that the keyspace had before. Tables state the number of the plan they were made for. The
    /// highest possible number is used for all further plans.
    pub number: u16,
    pub source: PlanSource,
    /// The previous plan, as long as some data are still stored as only that one demands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<LevelsPlan>,
    /// Number of items for which the plan was made, if it was made for the data.
    #[serde(default)]
    pub items_planned: u64,
}

impl PlanState {
    /// The first plan of a keyspace.
    pub fn first(plan: LevelsPlan, source: PlanSource) -> Self {
        Self { plan: plan.executed(), number: 0, source, before: None, items_planned: 0 }
    }

    /// Whether some data may still be stored otherwise than the plan demands.
    pub fn is_moving(&self) -> bool {
        self.before.is_some()
    }

    /// The state after `plan` has replaced this one's plan.
    pub fn followed_by(&self, plan: LevelsPlan, source: PlanSource, items_planned: u64) -> Self {
        // A return to the earlier plan makes the one in between the plan that data leave.
        let before = match &self.before {
            Some(before) if *before != plan => before,
            _ => &self.plan,
        };
        let before = Some(before.clone());
        Self { plan, number: self.number.saturating_add(1), source, before, items_planned }
    }

    /// The state once all data are stored as the plan demands.
    pub fn arrived(&self) -> Self {
        Self { before: None, ..self.clone() }
    }

    /// Levels of tables below the youngest.
    pub fn levels(&self) -> usize {
        self.plan.levels.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::{HashRange, KeyHasher, KeyspaceId, TableId};
    use alluvium_model::Plan;

    use super::*;
    use crate::manifest::{DatabaseState, Edit};

    #[test]
    fn the_plan_before_is_the_one_that_data_came_from() {
        let levels = |plan: Plan| LevelsPlan::try_from(plan).unwrap();
        let first = PlanState::first(LevelsPlan::silt(), PlanSource::Auto);
        let second = first.followed_by(levels(Plan::tiered()), PlanSource::Database, 0);
        assert_eq!((second.number, second.before.as_ref()), (1, Some(&LevelsPlan::silt())));
        let third = second.followed_by(levels(Plan::leveled()), PlanSource::Database, 0);
        assert_eq!((third.number, third.before.as_ref()), (2, Some(&LevelsPlan::silt())));
        let back = third.followed_by(LevelsPlan::silt(), PlanSource::Database, 0);
        assert_eq!((back.number, back.before.as_ref()), (3, Some(&levels(Plan::leveled()))));
        assert!(!back.arrived().is_moving() && back.arrived().plan == LevelsPlan::silt());
    }

    #[test]
    fn a_change_of_plan_keeps_tables_and_is_rebuilt() {
        let mut state = DatabaseState::default();
        let (name, hasher) = ("deep".to_owned(), KeyHasher::Xxh3 { seed: 1 });
        let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
        levels.extend([levels[1]; 2]);
        let (plan, source) = (LevelsPlan { sharding, log, levels }, PlanSource::Own);
        state.apply(&Edit::CreateKeyspace { keyspace: KeyspaceId(0), name, hasher, plan, source }).unwrap();
        for (file, level) in [(1, 3), (2, 2), (3, 1)] {
            let (range, over, repeats) = (HashRange::ALL, false, 0.0);
            state
                .apply(&Edit::AddSorted {
                    keyspace: KeyspaceId(0),
                    file: TableId(file),
                    range,
                    level,
                    over,
                    repeats,
                    items: 0,
                })
                .unwrap();
        }
        let plan = state.keyspaces[&KeyspaceId(0)].body.plan.followed_by(
            LevelsPlan::silt(),
            PlanSource::Database,
            7,
        );
        state.apply(&Edit::SetPlan { keyspace: KeyspaceId(0), plan: plan.clone() }).unwrap();
        let files: Vec<TableId> =
            state.keyspaces[&KeyspaceId(0)].body.levels[0][0].tables.iter().map(|table| table.file).collect();
        assert_eq!(
            (state.keyspaces[&KeyspaceId(0)].body.levels.len(), files),
            (1, vec![TableId(3), TableId(2), TableId(1)])
        );
        for plan in [plan.clone(), plan.arrived()] {
            state.apply(&Edit::SetPlan { keyspace: KeyspaceId(0), plan: plan.clone() }).unwrap();
            assert_eq!(state.keyspaces[&KeyspaceId(0)].body.plan, plan);
            let mut rebuilt = DatabaseState::default();
            state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
            assert_eq!(rebuilt, state);
        }
        assert!(state.apply(&Edit::SetPlan { keyspace: KeyspaceId(1), plan: plan.clone() }).is_err());
        let stored = serde_json::to_string(&plan).unwrap();
        let chained = stored.replace(
            &serde_json::to_string(&plan.plan).unwrap(),
            &serde_json::to_string(&Plan::skimpystash()).unwrap(),
        );
        assert!(chained != stored);
        assert_eq!(serde_json::from_str::<PlanState>(&stored).unwrap(), plan);
        let spec = serde_json::from_str::<PlanState>(&chained).unwrap().plan.log.chained;
        assert_eq!(Plan::Chained(spec.unwrap()), Plan::skimpystash());
    }
}
