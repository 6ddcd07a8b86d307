//! [`Decision`]: a choice of the policy, with all that it depended on.

use super::{Bounds, Holding, Shape, most_due};
use crate::plan::{Growth, LevelSpec};

/// A place of a level, as figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaceFigures {
    /// See [`Shape::runs`].
    pub runs: f64,
    /// See [`Shape::items`].
    pub items: f64,
    /// See [`Shape::bytes`].
    pub bytes: f64,
    /// See [`Shape::obsolete`].
    pub obsolete: f64,
    /// See [`Shape::span`].
    pub span: f64,
    /// See [`Shape::runs_full`], for the plan's number of runs.
    pub runs_full: f64,
}

impl PlaceFigures {
    /// The places of a level.
    pub fn of(shape: &impl Shape, spec: &LevelSpec) -> Vec<Self> {
        let runs_max = match spec.growth {
            Growth::Tiering { runs_max, .. } => runs_max,
            Growth::Leveling { .. } => 1,
        };
        let figures = |place: usize| Self {
            runs: shape.runs(place),
            items: shape.items(place),
            bytes: shape.bytes(place),
            obsolete: shape.obsolete(place),
            span: shape.span(place),
            runs_full: shape.runs_full(place, runs_max),
        };
        (0..shape.places()).map(figures).collect()
    }
}

impl Shape for Vec<PlaceFigures> {
    fn places(&self) -> usize {
        self.len()
    }

    fn runs(&self, place: usize) -> f64 {
        self[place].runs
    }

    fn items(&self, place: usize) -> f64 {
        self[place].items
    }

    fn bytes(&self, place: usize) -> f64 {
        self[place].bytes
    }

    fn obsolete(&self, place: usize) -> f64 {
        self[place].obsolete
    }

    fn span(&self, place: usize) -> f64 {
        self[place].span
    }

    fn runs_full(&self, place: usize, _: u32) -> f64 {
        self[place].runs_full
    }
}

/// A recorded choice: which place was merged, and the levels that were compared. Recordings of the engine are replayed
/// with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What the levels held.
    pub holding: Holding,
    /// All levels, the youngest first.
    pub levels: Vec<Vec<PlaceFigures>>,
    /// The number of the level and the position of its place to be merged next; `None` if none is due.
    pub chosen: Option<(usize, usize)>,
}

impl Decision {
    /// What the policy chooses for these levels.
    pub fn replay(&self, specs: &[LevelSpec]) -> Option<(usize, usize)> {
        let bounds = Bounds::new(specs, &self.holding);
        let choices = self.levels.iter().enumerate().map(|(number, level)| bounds.choose(number, level));
        most_due(choices).map(|(number, choice)| (number, choice.place))
    }
}
