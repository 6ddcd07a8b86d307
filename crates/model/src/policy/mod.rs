//! When a level merges, and which of its places first: one policy for the engine, the model of phases
//! and the simulator.
//!
//! A *place* is a part of a level that is merged together: a unit of the youngest level, or a container of a deeper
//! one. A level is merged while it exceeds a bound, beginning with the place that exceeds most; so places do not all
//! fill at once, and none waits for others.

mod bounds;
mod decision;

pub use bounds::{Bounds, Holding, most_due};
pub use decision::{Decision, PlaceFigures};

use crate::plan::LAST_GARBAGE_SHARE_MAX;

/// Bytes of a place's tables from which on it is merged. This bounds what a merge holds in memory or on disk.
pub const PLACE_BYTES_MAX: u64 = 256 << 20;

/// A level as the policy sees it: places that have runs, by their position.
pub trait Shape {
    /// Number of places.
    fn places(&self) -> usize;

    /// Number of runs over a place.
    fn runs(&self, place: usize) -> f64;

    /// Number of items of a place.
    fn items(&self, place: usize) -> f64;

    /// Bytes of a place; 0 where they are not known, and then no bound.
    fn bytes(&self, place: usize) -> f64;

    /// Estimated number of obsolete versions of a place.
    fn obsolete(&self, place: usize) -> f64;

    /// Size of a place, in units in which the whole level has the size 1.
    fn span(&self, place: usize) -> f64;

    /// Number of runs, up to `runs_max`, at which a place of a last level is full: not the same for all places.
    fn runs_full(&self, place: usize, runs_max: u32) -> f64;

    /// Number of items of all places.
    fn items_of_level(&self) -> f64 {
        (0..self.places()).map(|place| self.items(place)).sum()
    }
}

/// Which place of a level merges next, and how far the level exceeds its bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Position of the place.
    pub place: usize,
    /// Above 1 the merge is due.
    pub pressure: f64,
    /// How far the level exceeds its bound, for slowing writers.
    pub slowing: f64,
    /// Whether the bound exceeded is that of obsolete versions, so that the place is merged with what the next level
    /// has there.
    pub collects: bool,
}

/// Bounds of the youngest level.
#[derive(Clone, Copy, Debug)]
pub struct YoungestBounds {
    /// Maximum number of runs over a place.
    pub runs_max: u32,
    /// Maximum number of items in all runs.
    pub items_max: f64,
    /// How far obsolete versions exceed their bound.
    pub by_obsolete: f64,
    /// Whether a merge for obsolete versions takes in what the next level has.
    pub collects: bool,
}

/// The youngest level: the fullest place while the level holds too many items, or the one that exceeds another bound
/// more. Returns `None` if the level is empty.
pub fn of_youngest(shape: &impl Shape, bounds: &YoungestBounds) -> Option<Choice> {
    let by_items = shape.items_of_level() / bounds.items_max.max(1.0);
    let fullest = most(shape, |place| shape.items(place))?;
    let tallest = most(shape, |place| shape.runs(place))?;
    let foulest = most(shape, |place| shape.obsolete(place))?;
    let heaviest = most(shape, |place| shape.bytes(place))?;
    let others = [
        (tallest, shape.runs(tallest) / f64::from(bounds.runs_max), false),
        (foulest, bounds.by_obsolete, bounds.collects),
        (heaviest, shape.bytes(heaviest) / PLACE_BYTES_MAX as f64, false),
    ];
    Some(first_or_more((fullest, by_items), &others, by_items.max(bounds.by_obsolete)))
}

/// A tiering level in between: the place with most runs while the mean number of runs exceeds that of evenly staggered
/// places, or the one that exceeds another bound more.
pub fn of_tiering(shape: &impl Shape, runs_max: u32, by_obsolete: f64, collects: bool) -> Option<Choice> {
    let runs_max = f64::from(runs_max);
    let tallest = most(shape, |place| shape.runs(place))?;
    let all = || 0..shape.places();
    let covered: f64 = all().map(|place| shape.span(place)).sum();
    let mean: f64 = all().map(|place| shape.runs(place) * shape.span(place)).sum();
    let mean_max = mean_runs(runs_max, shape.places() as f64 / covered);
    // To merge less than half of the runs would never let them accumulate.
    let is_worth_it = shape.runs(tallest) >= (runs_max / 2.0 + 1.0).floor().max(2.0);
    let by_mean = if is_worth_it { mean / mean_max } else { 0.0 };
    let by_height = shape.runs(tallest) / (runs_max - 0.5);
    let bytes_to_merge = |place: usize| if shape.runs(place) > 1.0 { shape.bytes(place) } else { 0.0 };
    let heaviest = most(shape, bytes_to_merge)?;
    let foulest = most(shape, |place| shape.obsolete(place))?;
    let others = [
        (heaviest, bytes_to_merge(heaviest) / PLACE_BYTES_MAX as f64, false),
        (foulest, by_obsolete, collects),
    ];
    let slowing = by_mean.max(shape.runs(tallest) / runs_max).max(by_obsolete);
    Some(first_or_more((tallest, by_mean.max(by_height)), &others, slowing))
}

/// A last level that tiers: the place that exceeds its number of runs or its share of obsolete versions most.
pub fn of_last_tiering(shape: &impl Shape, runs_max: u32) -> Option<Choice> {
    let over = |place: usize| {
        if shape.runs(place) < 2.0 {
            return 0.0;
        }
        let by_obsolete = shape.obsolete(place) / shape.items(place).max(1.0) / LAST_GARBAGE_SHARE_MAX;
        by_obsolete.max(shape.runs(place) / (shape.runs_full(place, runs_max) - 0.5))
    };
    let worst = most(shape, over)?;
    let slowing = shape.runs(worst) / f64::from(runs_max);
    Some(Choice { place: worst, pressure: over(worst), slowing, collects: false })
}

/// A leveling level in between: the densest place while the level holds more than `items_max`. It is the place that was
/// merged down longest ago.
pub fn of_leveling(shape: &impl Shape, items_max: f64) -> Option<Choice> {
    let place = densest(shape)?;
    let pressure = shape.items_of_level() / items_max.max(1.0);
    Some(Choice { place, pressure, slowing: pressure, collects: false })
}

/// The place with most items for its size; `None` if the level is empty.
pub fn densest(shape: &impl Shape) -> Option<usize> {
    most(shape, |place| shape.items(place) / shape.span(place))
}

/// The mean number of runs over `places` places that are staggered evenly between 0 (a place just merged) and
/// `runs_full`.
pub fn mean_runs(runs_full: f64, places: f64) -> f64 {
    runs_full * (1.0 + 1.0 / places) / 2.0 - 0.5
}

/// The inverse of [`mean_runs`]: its `runs_full`.
pub fn runs_full(mean_runs: f64, places: f64) -> f64 {
    (2.0 * mean_runs + 1.0) / (1.0 + 1.0 / places)
}

/// Maximum number of runs of the place of a last level that begins at `position`: between three quarters of `runs_max`
/// and all of it, so that not all places are full at once.
pub fn staggered(runs_max: u32, position: u64) -> u32 {
    let spread = position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let less = (spread * u64::from(runs_max / 4 + 1)) >> 32;
    (runs_max - less as u32).max(2)
}

/// The last of the places with the largest weight.
fn most(shape: &impl Shape, weight: impl Fn(usize) -> f64) -> Option<usize> {
    let weighed = (0..shape.places()).map(|place| (place, weight(place)));
    weighed.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(place, _)| place)
}

/// The place with the highest pressure. `others` count only if they are due.
fn first_or_more(first: (usize, f64), others: &[(usize, f64, bool)], slowing: f64) -> Choice {
    let due = others.iter().filter(|(_, pressure, _)| *pressure > 1.0);
    let first = (first.0, first.1, false);
    let (place, pressure, collects) =
        due.fold(first, |most, &other| if other.1 > most.1 { other } else { most });
    Choice { place, pressure, slowing, collects }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places of equal size, each with its runs, items, bytes and obsolete versions. Each is full one run earlier than
    /// the one before.
    fn places(figures: &[[f64; 4]]) -> Vec<PlaceFigures> {
        let span = 1.0 / figures.len() as f64;
        let numbered = figures.iter().enumerate();
        let place = |(number, &[runs, items, bytes, obsolete]): (usize, &[f64; 4])| {
            let runs_full = 5.0 - number as f64;
            PlaceFigures { runs, items, bytes, obsolete, span, runs_full }
        };
        numbered.map(place).collect()
    }

    fn place(choice: Option<Choice>) -> (usize, bool, bool) {
        choice.map(|choice| (choice.place, choice.pressure > 1.0, choice.collects)).unwrap()
    }

    #[test]
    fn an_empty_level_has_nothing_to_merge() {
        let empty = places(&[]);
        let bounds = YoungestBounds { runs_max: 8, items_max: 1.0, by_obsolete: 2.0, collects: true };
        assert_eq!(of_youngest(&empty, &bounds), None);
        assert_eq!(of_tiering(&empty, 8, 2.0, true), None);
        assert_eq!((of_last_tiering(&empty, 8), of_leveling(&empty, 1.0)), (None, None));
    }

    #[test]
    fn the_youngest_level_merges_for_the_bound_that_it_exceeds_most() {
        let heavy = 2.0 * PLACE_BYTES_MAX as f64;
        let shape = places(&[[2.0, 50.0, 1.0, 0.0], [9.0, 10.0, 1.0, 0.0], [1.0, 5.0, 2.0, 5.0]]);
        let bounds = YoungestBounds { runs_max: 10, items_max: 60.0, by_obsolete: 0.0, collects: true };
        assert_eq!(place(of_youngest(&shape, &bounds)), (0, true, false));
        assert_eq!(
            place(of_youngest(&shape, &YoungestBounds { items_max: 100.0, ..bounds })),
            (0, false, false)
        );
        let short = YoungestBounds { runs_max: 6, ..bounds };
        assert_eq!(place(of_youngest(&shape, &short)), (1, true, false));
        assert_eq!(
            place(of_youngest(&shape, &YoungestBounds { by_obsolete: 3.0, ..bounds })),
            (2, true, true)
        );
        let shape = places(&[[2.0, 50.0, 1.0, 0.0], [1.0, 10.0, heavy, 0.0]]);
        assert_eq!(place(of_youngest(&shape, &bounds)), (1, true, false));
    }

    #[test]
    fn a_tiering_level_merges_the_place_with_most_runs_over_the_mean() {
        let low = places(&[[1.0, 9.0, 0.0, 0.0], [2.0, 9.0, 0.0, 0.0], [3.0, 9.0, 0.0, 0.0]]);
        assert_eq!(place(of_tiering(&low, 8, 0.0, false)), (2, false, false));
        let high = places(&[[5.0, 9.0, 0.0, 0.0], [6.0, 9.0, 0.0, 0.0], [4.0, 9.0, 0.0, 9.0]]);
        assert_eq!(place(of_tiering(&high, 8, 0.0, false)), (1, true, false));
        assert_eq!(place(of_tiering(&high, 8, 9.0, true)), (2, true, true));
    }

    #[test]
    fn last_and_leveling_levels_merge_what_exceeds_most() {
        let shape = places(&[[4.0, 9.0, 0.0, 0.0], [4.0, 30.0, 0.0, 1.0], [1.0, 9.0, 0.0, 9.0]]);
        // Place 1 is full one run earlier than place 0.
        assert_eq!(place(of_last_tiering(&shape, 5)), (1, true, false));
        assert_eq!(place(of_leveling(&shape, 40.0)), (1, true, false));
        assert_eq!(place(of_leveling(&shape, 50.0)), (1, false, false));
    }

    #[test]
    fn staggered_places_have_the_mean_that_was_asked_for() {
        for places in [1.0, 2.0, 7.0, 64.0] {
            assert!((runs_full(mean_runs(8.0, places), places) - 8.0).abs() < 1e-9);
        }
        assert!((mean_runs(8.0, f64::INFINITY) - 3.5).abs() < 1e-9);
    }

    #[test]
    fn places_are_full_at_different_numbers_of_runs() {
        for runs_max in [2u32, 3, 8, 128] {
            let bounds: Vec<u32> = (0..64u64).map(|place| staggered(runs_max, place << 58)).collect();
            assert!(
                bounds.iter().all(|&bound| bound >= (runs_max - runs_max / 4).max(2) && bound <= runs_max)
            );
            let different: std::collections::BTreeSet<_> = bounds.into_iter().collect();
            assert!(different.len() as u32 > runs_max / 8, "{different:?}");
        }
    }
}
