//! [`OldValues`]: estimates how many obsolete versions a keyspace's levels contain, and when these are too many.
//!
//! Levels that tier hand on runs when there are many, whatever they contain: in a store whose items are overwritten,
//! each level could fill with obsolete versions of the same items. The levels above the last together may therefore
//! contain at most half as many obsolete versions as there are live items. Beyond that, the unit or container with most
//! of them is merged with what the next level holds in its range
//! ([decision 0024](../../../../docs/decisions/0024-tiers-bound-their-old-values.md)).

use alluvium_model::{Growth, Plan, TIERS_GARBAGE_SHARE_MAX};

use super::repeats::ends_garbage;
use crate::level::{Container, Level, PlacedTable, Version};

/// Estimated obsolete versions in a keyspace.
#[derive(Debug)]
pub(super) struct OldValues {
    /// By the number of the level: obsolete versions, there or below, that are hidden by items in the level.
    of_level: Vec<f64>,
    /// Maximum in all levels above the last together.
    items_max: f64,
    /// The level to be merged when there are more, or `None` if it has none to collect.
    foulest: Option<usize>,
}

impl OldValues {
    /// The obsolete versions in `version`. As few as a freeze adds, `freeze_items`, are never too many.
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

    /// How far the obsolete versions above the last level exceed their bound, if the level of this number is the one to
    /// be merged for that; otherwise 0.
    pub fn pressure(&self, number: usize) -> f64 {
        if self.foulest != Some(number) {
            return 0.0;
        }
        let last = self.of_level.len() - 1;
        self.of_level[..last].iter().sum::<f64>() / self.items_max.max(1.0)
    }
}

/// Whether the level and the next one both accumulate runs: then handing on runs drops few obsolete versions.
pub(super) fn collects(plan: &Plan, number: usize) -> bool {
    let Plan::Levels { levels, .. } = plan else { return false };
    let tiers = levels.get(number).is_some_and(|level| matches!(level.growth, Growth::Tiering { .. }));
    tiers && !ends_garbage(plan, number)
}

fn of_level_below(level: &Level) -> f64 {
    level.containers().iter().map(of_container).sum()
}

/// Obsolete versions, in the container or below it, that are hidden by items there.
pub(super) fn of_container(container: &Container<PlacedTable>) -> f64 {
    let of_table = |table: &PlacedTable| table.items_within(container.range) * table.repeats;
    container.tables.iter().map(of_table).sum()
}
