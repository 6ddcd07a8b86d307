//! Plans of one level, as the engine executes them ([decision
//! 0080](../../../../docs/decisions/0080-a-level-alone-is-merged-into-itself.md)).

use super::{Filter, Growth, Index, LevelSpec, LevelsPlan, Plan, TableLayout};

/// Bits of the tags in filters of runs on their way into a level without filters.
const ARRIVING_TAG_BITS: u32 = 12;
/// Maximum number of runs that wait to be merged into a level of one run: the smallest that is legal.
const ARRIVING_RUNS_MAX: u32 = 2;

impl Plan {
    /// The plan as the engine executes it: see [`LevelsPlan::executed`].
    pub fn executed(self) -> Self {
        match self {
            Self::Levels(plan) => Self::Levels(plan.executed()),
            Self::Chained(_) => self,
        }
    }
}

impl LevelsPlan {
    /// The plan as the engine executes it. Only a plan of one level changes. The level is merged into itself, and what
    /// is merged and what is not differ in the engine, so it becomes two levels: runs as they come from the log, and
    /// the one run into which they are merged.
    ///
    /// A level that tiers merges all its runs into one when it has `runs_max` of them or a quarter of its items are
    /// obsolete. A level that levels merges them as soon as they exist: what waits is at most the content of one log.
    pub fn executed(self) -> Self {
        let [level] = self.levels[..] else { return self };
        let levels = match level.growth {
            Growth::Tiering { runs_max, .. } => {
                // The merged run is one of them.
                let runs_max = (runs_max - 1).max(ARRIVING_RUNS_MAX);
                vec![with_runs(level, runs_max), level.merged()]
            }
            Growth::Leveling { .. } => {
                vec![with_runs(level.arriving(), ARRIVING_RUNS_MAX), level]
            }
        };
        Self { levels, ..self }
    }
}

fn with_runs(level: LevelSpec, runs_max: u32) -> LevelSpec {
    LevelSpec { growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE }, ..level }
}

impl LevelSpec {
    /// The level of the run into which this level's runs are merged. A merge writes items in the order of their hashes,
    /// so a table of hash layout becomes a sorted one, with the same filter and with fences. A filter that names one of
    /// several runs becomes one for a single run.
    fn merged(self) -> Self {
        let (table, index) = match self.table {
            TableLayout::Hash => (TableLayout::Sorted, Index::Fences),
            table => (table, self.index),
        };
        let filter = match self.filter {
            Filter::MultiLevelCuckoo { tag_bits } => Filter::Cuckoo { tag_bits },
            filter => filter,
        };
        Self { growth: Growth::Leveling { ratio: 2.0 }, table, filter, index }
    }

    /// The level of runs that are to be merged into this one. They have filters in any case, so that lookups do not
    /// read them in vain.
    fn arriving(self) -> Self {
        let filter = match self.filter {
            Filter::None => Filter::Cuckoo { tag_bits: ARRIVING_TAG_BITS },
            filter => filter,
        };
        Self { filter, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(level: LevelSpec) -> LevelsPlan {
        LevelsPlan { levels: vec![level], ..LevelsPlan::silt() }
    }

    #[test]
    fn one_level_becomes_its_runs_and_the_run_they_are_merged_into() {
        let [hash, sorted] = LevelsPlan::silt().levels[..] else { unreachable!() };
        let tiering = LevelSpec { growth: Growth::Tiering { runs_max: 9, share: Growth::ANY_SHARE }, ..hash };
        let executed = alone(tiering).executed();
        assert_eq!(executed.levels[0].growth, Growth::Tiering { runs_max: 8, share: Growth::ANY_SHARE });
        assert_eq!(
            (executed.levels[0].table, executed.levels[1].table),
            (TableLayout::Hash, TableLayout::Sorted)
        );
        assert_eq!(executed.levels[1].filter, hash.filter);
        let executed = alone(sorted).executed();
        assert_eq!(executed.levels[1], sorted);
        assert_eq!(executed.levels[0].filter, Filter::Cuckoo { tag_bits: 12 });
        assert_eq!(executed.clone().executed(), executed);
        assert_eq!(LevelsPlan::silt().executed(), LevelsPlan::silt());
    }
}
