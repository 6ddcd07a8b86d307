//! Which plans the engine executes today: the one rule that engine and planner share.
//!
//! The rule looks at one level at a time, so that a search can keep to it while it chooses.

use super::{Filter, Growth, Index, LevelSpec, Plan, PlanError, TableLayout};

impl Plan {
    /// Checks that the plan is legal and that the engine executes it, with the reason when it doesn't.
    pub fn check_executable(&self) -> Result<(), PlanError> {
        self.validate()?;
        let Self::Levels { levels, .. } = self else {
            return refuse("the engine executes plans of levels; a chained plan is not among them");
        };
        levels.iter().enumerate().try_for_each(|(number, level)| level.check_executable(number, levels.len()))
    }

    /// Whether the engine executes the plan.
    pub fn is_executable(&self) -> bool {
        self.check_executable().is_ok()
    }
}

impl LevelSpec {
    /// Checks that the engine executes the level as number `number` (from 0) of `levels`. Whether the level is legal is
    /// another question.
    pub fn check_executable(&self, number: usize, levels: usize) -> Result<(), PlanError> {
        match (number, levels, self.growth, self.table) {
            (0, 2, Growth::Tiering { .. }, TableLayout::Hash) => {}
            (1, 2, Growth::Leveling { .. }, TableLayout::Sorted) => {}
            _ => {
                return refuse(
                    "the engine executes a tiering level of Hash tables over a leveling level of Sorted tables",
                );
            }
        }
        if number == 1 && self.filter != Filter::None {
            return refuse("the engine keeps no filter on a Sorted level");
        }
        if number == 1 && !matches!(self.index, Index::Trie | Index::Fences) {
            return refuse("the engine indexes a Sorted level by a trie or by fences");
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
    fn of_the_named_plans_both_of_silt_are_executed() {
        for name in Plan::NAMES {
            assert_eq!(Plan::named(name).unwrap().is_executable(), name.starts_with("silt"), "{name}");
        }
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        let Plan::Levels { sharding, log, levels } = Plan::silt() else { unreachable!() };
        let with = |change: fn(&mut LevelSpec)| {
            let mut levels = levels.clone();
            change(&mut levels[1]);
            Plan::Levels { sharding, log, levels }.check_executable()
        };
        assert!(with(|_| ()).is_ok());
        assert!(with(|level| level.index = Index::Trie).is_ok());
        assert!(with(|level| level.index = Index::ThreeLevel).unwrap_err().to_string().contains("trie"));
        let filtered = with(|level| level.filter = Filter::Cuckoo { tag_bits: 12 });
        assert!(filtered.unwrap_err().to_string().contains("no filter"));
    }
}
