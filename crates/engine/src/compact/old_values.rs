//! [`OldValues`]: how many values that have newer ones lie in a keyspace's levels, and when that is too much.
//!
//! Levels that tier hand on runs when they are many, whatever is in them: of a store that is overwritten, each could
//! fill with old values of the same items. So all levels above the last together may hold half as many old values as
//! there are live items; then the place that has most of them is merged with what the next level has there
//! ([decision 0024](../../../../docs/decisions/0024-tiers-bound-their-old-values.md)).

use alluvium_model::{Growth, Plan, TIERS_GARBAGE_SHARE_MAX};

use super::repeats::ends_garbage;
use crate::level::{Container, Level, PlacedTable, Version};

/// Old values in a keyspace, estimated.
#[derive(Debug)]
pub(super) struct OldValues {
    /// By the number of the level: those that newer ones in the level hide, there or below.
    of_level: Vec<f64>,
    /// Most in all levels above the last together.
    items_max: f64,
    /// The level to be merged when they are more; `None` where there are none to collect.
    foulest: Option<usize>,
}

impl OldValues {
    /// Those of the version. So few that a freeze brings as many, `freeze_items`, are never too many.
    pub fn of(version: &Version, freeze_items: f64) -> Self {
        let mut of_level = vec![version.garbage_estimate()];
        of_level.extend(version.levels.iter().map(of_level_below));
        let all: f64 = of_level.iter().sum();
        let present = (version.level_items() + version.run_items()) as f64;
        let items_max = (TIERS_GARBAGE_SHARE_MAX * (present - all).max(0.0)).max(freeze_items);
        let collectable = (0..version.last_level()).filter(|&number| collects(&version.plan.plan, number));
        let foulest = collectable.max_by(|&one, &other| of_level[one].total_cmp(&of_level[other]));
        let foulest = foulest.filter(|&number| of_level[number] > 0.0);
        Self { of_level, items_max, foulest }
    }

    /// How far the old values above the last level are over their bound, if the level of this number is the one to be
    /// merged for that; else 0.
    pub fn pressure(&self, number: usize) -> f64 {
        if self.foulest != Some(number) {
            return 0.0;
        }
        let last = self.of_level.len() - 1;
        self.of_level[..last].iter().sum::<f64>() / self.items_max.max(1.0)
    }
}

/// Whether the level collects runs for one that collects runs: then handing on runs ends few old values.
pub(super) fn collects(plan: &Plan, number: usize) -> bool {
    let Plan::Levels { levels, .. } = plan else { return false };
    let tiers = levels.get(number).is_some_and(|level| matches!(level.growth, Growth::Tiering { .. }));
    tiers && !ends_garbage(plan, number)
}

fn of_level_below(level: &Level) -> f64 {
    level.containers().iter().map(of_container).sum()
}

/// Old values in the container, or below it, that have newer ones there.
pub(super) fn of_container(container: &Container<PlacedTable>) -> f64 {
    let of_table = |table: &PlacedTable| table.items_within(container.range) * table.repeats;
    container.tables.iter().map(of_table).sum()
}
