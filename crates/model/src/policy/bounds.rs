//! [`Bounds`]: how much the levels of a keyspace may hold, and what each of them merges next.

use super::{Choice, Shape, YoungestBounds, mean_runs, runs_full};
use super::{of_last_tiering, of_leveling, of_tiering, of_youngest};
use crate::plan::{GARBAGE_SHARE_MAX, Growth, LevelSpec, TIERS_GARBAGE_SHARE_MAX};

/// What the levels of a keyspace hold, as far as their bounds follow from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// Items in the youngest level.
    pub young_items: f64,
    /// Items in the levels below it.
    pub items_below: f64,
    /// By level: estimated obsolete versions, there or below, that are hidden by its items.
    pub obsolete: Vec<f64>,
    /// Items of one freeze of the log.
    pub freeze_items: f64,
    /// Number of parts of the youngest level that are merged one by one.
    pub units: f64,
    /// Number of items that the keyspace is expected to hold in the end.
    pub expected_items: f64,
    /// Number of items in the youngest level for whose filters there is memory; infinite without a limit.
    pub young_items_max: f64,
}

/// Bounds of all levels of a plan.
#[derive(Clone, Debug)]
pub struct Bounds<'p> {
    specs: &'p [LevelSpec],
    items_max: f64,
    /// By level: how far its obsolete versions exceed their bound.
    by_obsolete: Vec<f64>,
    /// By level: items of the level when every place of it is full.
    room: Vec<f64>,
}

impl<'p> Bounds<'p> {
    /// The bounds for levels that hold this. The youngest of them must be tiering.
    pub fn new(specs: &'p [LevelSpec], holding: &Holding) -> Self {
        let Growth::Tiering { runs_max, .. } = specs[0].growth else {
            unreachable!("plans whose first level is leveling are refused")
        };
        let &Holding { freeze_items, units, .. } = holding;
        let present = holding.young_items + holding.items_below;
        let share_items = specs[0].growth.items_max(present.max(holding.expected_items));
        let runs_items = mean_runs(f64::from(runs_max), units) * freeze_items;
        let items_max = share_items.min(holding.young_items_max).max(freeze_items).min(runs_items);
        let full = runs_full(items_max / freeze_items, units).min(f64::from(runs_max));
        let ratio = |spec: &LevelSpec| match spec.growth {
            Growth::Tiering { runs_max, .. } => f64::from(runs_max),
            Growth::Leveling { ratio } => ratio,
        };
        let mut room = vec![full * freeze_items];
        for spec in &specs[1..] {
            room.push(room[room.len() - 1] * ratio(spec));
        }
        Self { specs, items_max, by_obsolete: by_obsolete(specs, holding), room }
    }

    /// What the level of this number merges next; `None` if it is empty or has no bound.
    pub fn choose(&self, number: usize, shape: &impl Shape) -> Option<Choice> {
        let is_last = number + 1 == self.specs.len();
        let (by_obsolete, collects) = (self.by_obsolete[number], collects(self.specs, number));
        match self.specs[number].growth {
            Growth::Tiering { runs_max, .. } if number == 0 => {
                let items_max = self.items_max;
                of_youngest(shape, &YoungestBounds { runs_max, items_max, by_obsolete, collects })
            }
            Growth::Tiering { runs_max, .. } if is_last => of_last_tiering(shape, runs_max),
            Growth::Tiering { runs_max, .. } => of_tiering(shape, runs_max, by_obsolete, collects),
            Growth::Leveling { .. } if is_last => None,
            Growth::Leveling { .. } => of_leveling(shape, self.room[number]),
        }
    }
}

/// The level that is merged next, and what of it; `None` if no level exceeds its bound.
pub fn most_due(choices: impl IntoIterator<Item = Option<Choice>>) -> Option<(usize, Choice)> {
    let mut most: Option<(usize, Choice)> = None;
    for (number, choice) in choices.into_iter().enumerate() {
        let least = most.map_or(1.0, |(_, choice)| choice.pressure);
        if let Some(choice) = choice.filter(|choice| choice.pressure > least) {
            most = Some((number, choice));
        }
    }
    most
}

/// Whether merging the runs of a tiering level drops the obsolete versions below them. It does if everything below is
/// one run, and in the last level, which is merged into itself.
fn drops_obsolete(specs: &[LevelSpec], number: usize) -> bool {
    specs.get(number + 1).is_none_or(|below| matches!(below.growth, Growth::Leveling { .. }))
}

/// Whether the level and the next one both accumulate runs: then handing on runs drops few obsolete versions, and a
/// merge for them takes in what the next level has.
fn collects(specs: &[LevelSpec], number: usize) -> bool {
    matches!(specs[number].growth, Growth::Tiering { .. }) && !drops_obsolete(specs, number)
}

/// By level: how far obsolete versions exceed their bound.
///
/// Above one run, a level's own may be a quarter of all items. Levels that tier hand on runs when there are many,
/// whatever they contain: in a store whose items are overwritten, each could fill with obsolete versions of the same
/// items. All levels above the last together may therefore have at most half as many obsolete versions as there are
/// live items. Beyond that, the level with most of them is merged with what the next one has
/// ([decision 0024](../../../../../docs/decisions/0024-tiers-bound-their-old-values.md)). As few as one freeze adds are
/// never too many.
fn by_obsolete(specs: &[LevelSpec], holding: &Holding) -> Vec<f64> {
    let Holding { obsolete, freeze_items, .. } = holding;
    let last = specs.len() - 1;
    let present = holding.young_items + holding.items_below;
    let all: f64 = obsolete.iter().sum();
    let all_max = (TIERS_GARBAGE_SHARE_MAX * (present - all).max(0.0)).max(*freeze_items);
    let collectable = (0..last).filter(|&number| collects(specs, number) && obsolete[number] > 0.0);
    let most = collectable.max_by(|&one, &other| obsolete[one].total_cmp(&obsolete[other]));
    let of_level = |number: usize| {
        if collects(specs, number) {
            let is_most = most == Some(number);
            return if is_most { obsolete[..last].iter().sum::<f64>() / all_max.max(1.0) } else { 0.0 };
        }
        let own_max = match number {
            0 => (GARBAGE_SHARE_MAX * (present - obsolete[0])).max(*freeze_items),
            _ => GARBAGE_SHARE_MAX * holding.items_below,
        };
        obsolete[number] / own_max.max(1.0)
    };
    (0..specs.len()).map(of_level).collect()
}
