//! Which plans the engine executes today: the rule that engine and planner share.
//!
//! The rule looks at one level at a time, so that a search can apply it while it chooses.

use super::{Filter, Growth, Index, LevelSpec, LevelsPlan, Plan, PlanError, TableLayout};

/// Maximum number of runs that one multi-level filter covers.
const MULTI_LEVEL_RUNS_MAX: u32 = 8;

impl Plan {
    /// The plan as one of levels.
    ///
    /// # Errors
    /// For a chained plan.
    pub fn as_levels(&self) -> Result<&LevelsPlan, PlanError> {
        match self {
            Self::Levels(plan) => Ok(plan),
            Self::Chained(_) => Err(PlanError("a chained plan has no levels".to_owned())),
        }
    }

    /// Checks that the plan is legal and that the engine executes it for keyspaces in the order of hashed keys. Returns
    /// the reason if not.
    pub fn check_executable(&self) -> Result<(), PlanError> {
        self.validate()?;
        match self {
            Self::Levels(plan) => plan.check_executable(),
            // The levels behind the chains are those of `silt`.
            Self::Chained(_) => Ok(()),
        }
    }

    /// Whether the engine executes the plan for keyspaces in the order of hashed keys.
    pub fn is_executable(&self) -> bool {
        self.check_executable().is_ok()
    }
}

impl LevelsPlan {
    /// Checks that the plan is legal and that the engine executes it for keyspaces in the order of hashed keys. Returns
    /// the reason if not.
    pub fn check_executable(&self) -> Result<(), PlanError> {
        self.check_levels(LevelSpec::check_executable)
    }

    /// Like [`LevelsPlan::check_executable`], for semi-sorted keyspaces: those that keep the items of a key's prefix
    /// together.
    pub fn check_executable_semi_sorted(&self) -> Result<(), PlanError> {
        if self.log.chained.is_some() {
            return refuse(
                "a chained log has the items of a prefix anywhere: a semi-sorted keyspace has levels",
            );
        }
        self.check_levels(LevelSpec::check_executable_semi_sorted)
    }

    fn check_levels(
        &self,
        check: fn(&LevelSpec, usize, usize) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        self.validate()?;
        if let [level] = self.levels[..]
            && level.growth.items_max(1.0).is_finite()
        {
            return refuse("a level alone holds all items, so its share is not bounded: it is 0.99");
        }
        let executed = self.clone().executed();
        let levels = executed.levels.len();
        (0..).zip(&executed.levels).try_for_each(|(number, level)| check(level, number, levels))
    }
}

impl LevelSpec {
    /// Checks that the engine executes the level as number `number` (from 0) of `levels`, for keyspaces in the order of
    /// hashed keys. Does not check whether the level is legal.
    pub fn check_executable(&self, number: usize, levels: usize) -> Result<(), PlanError> {
        self.check_executable_but_for_index(number, levels)
    }

    /// Like [`LevelSpec::check_executable`], for semi-sorted keyspaces.
    pub fn check_executable_semi_sorted(&self, number: usize, levels: usize) -> Result<(), PlanError> {
        if self.table != TableLayout::Sorted {
            return refuse(
                "a semi-sorted keyspace keeps items of one prefix together, so its levels are Sorted",
            );
        }
        self.check_executable_but_for_index(number, levels)?;
        match self.index {
            Index::ThreeLevel => Ok(()),
            Index::Fences => refuse(
                "fences presume that hashes are uniform, and in a semi-sorted keyspace one prefix may have most items: \
                 index its levels by ThreeLevel",
            ),
            Index::Trie | Index::TrieDense | Index::Implicit | Index::Offsets => refuse(
                "a trie tells items apart by their leading 64 bits, which all items of a prefix share: index the \
                 levels of a semi-sorted keyspace by ThreeLevel",
            ),
        }
    }

    fn check_executable_but_for_index(&self, number: usize, levels: usize) -> Result<(), PlanError> {
        if levels < 2 {
            return refuse(
                "a level alone is executed as two: its runs, and the run into which they are merged",
            );
        }
        if number == 0 && matches!(self.growth, Growth::Leveling { .. }) {
            return refuse("the engine's youngest of several levels tiers: each freeze makes a run of it");
        }
        if number > 0 && self.growth.items_max(1.0).is_finite() {
            return refuse("the engine bounds only the youngest level by a share of the items");
        }
        match (number, self.table, self.filter) {
            (_, TableLayout::Sorted, Filter::MultiLevelCuckoo { .. }) => match self.growth {
                Growth::Tiering { runs_max, .. } if runs_max <= MULTI_LEVEL_RUNS_MAX => {}
                Growth::Tiering { .. } => return refuse("a multi-level filter covers at most eight runs"),
                Growth::Leveling { .. } => {
                    return refuse("a level of one run has a cuckoo filter, not a multi-level one");
                }
            },
            (0, TableLayout::Hash | TableLayout::Sorted, Filter::Cuckoo { .. })
            | (1.., TableLayout::Sorted, Filter::Cuckoo { .. } | Filter::None)
            | (_, TableLayout::Sorted, Filter::Fragments { .. })
            | (_, TableLayout::Sorted | TableLayout::Bucketed, Filter::Static { .. })
            | (_, TableLayout::Bucketed, Filter::BloomCluster { .. }) => {}
            (_, TableLayout::Bucketed, _) => {
                return refuse("the engine gives Bucketed tables clustered Bloom filters, or static ones");
            }
            (0, ..) => {
                return refuse(
                    "the engine's youngest level has Hash or Sorted tables with filters of their own, or Bucketed ones",
                );
            }
            (_, TableLayout::Sorted, _) => {
                return refuse(
                    "the engine keeps a cuckoo or static filter or fragments for each table of a Sorted level, a \
                     multi-level filter for all runs of a container, or no filter",
                );
            }
            _ => return refuse("the engine's levels below the youngest have Sorted or Bucketed tables"),
        }
        Ok(())
    }
}

fn refuse(reason: &str) -> Result<(), PlanError> {
    Err(PlanError(reason.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_plans_are_executed() {
        for name in Plan::NAMES {
            assert!(Plan::named(name).unwrap().is_executable(), "{name}");
        }
    }

    #[test]
    fn semi_sorted_keyspaces_need_three_level_indexes() {
        for name in Plan::NAMES {
            let plan = Plan::named(name).unwrap();
            let fits = plan.as_levels().and_then(LevelsPlan::check_executable_semi_sorted);
            let is_semi_sorted = ["semi-sorted", "slimdb", "slimdb-tiering"].contains(&name);
            assert_eq!(fits.is_ok(), is_semi_sorted, "{name}: {fits:?}");
        }
        let reason =
            Plan::leveled().as_levels().unwrap().check_executable_semi_sorted().unwrap_err().to_string();
        assert!(reason.contains("uniform"), "{reason}");
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let LevelsPlan { sharding, log, levels } = LevelsPlan::silt();
        let with = |number: usize, change: fn(&mut LevelSpec)| {
            let mut levels = levels.clone();
            change(&mut levels[number]);
            Plan::Levels(LevelsPlan { sharding, log, levels }).check_executable()
        };
        assert!(with(1, |_| ()).is_ok());
        assert!(with(1, |level| level.index = Index::Trie).is_ok());
        assert!(with(1, |level| level.index = Index::TrieDense).is_ok());
        let fragments = |level: &mut LevelSpec| {
            (level.index, level.filter) = (Index::TrieDense, Filter::Fragments { bits: 8 });
        };
        assert!(with(1, fragments).is_ok());
        assert!(with(1, |level| level.filter = Filter::Cuckoo { tag_bits: 12 }).is_ok());
        assert!(with(1, |level| level.growth = levels_of_tiering()).is_ok());
        let shared = with(1, |level| level.growth = Growth::Tiering { runs_max: 4, share: 0.1 });
        assert!(shared.unwrap_err().to_string().contains("a share"));
        let named = with(1, |level| level.filter = Filter::MultiLevelCuckoo { tag_bits: 12 });
        assert!(named.unwrap_err().to_string().contains("one run"));
        let many = with(1, |level| {
            level.filter = Filter::MultiLevelCuckoo { tag_bits: 12 };
            level.growth = Growth::Tiering { runs_max: 9, share: Growth::ANY_SHARE };
        });
        assert!(many.unwrap_err().to_string().contains("eight runs"));
        let leveled = with(0, |level| level.growth = Growth::Leveling { ratio: 4.0 });
        assert!(leveled.unwrap_err().to_string().contains("youngest"));
        let LevelsPlan { levels, .. } = LevelsPlan::silt();
        let alone = Plan::Levels(LevelsPlan { sharding, log, levels: levels[..1].to_vec() });
        assert!(alone.check_executable().unwrap_err().to_string().contains("not bounded"));
    }

    fn levels_of_tiering() -> Growth {
        Growth::Tiering { runs_max: 4, share: Growth::ANY_SHARE }
    }
}
