//! [`Figure`]: a published figure as numbers, ours compared with the paper's.

use serde::Serialize;

/// A published figure that was reproduced.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Paper and number, for example `lim-4.9`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Drawings above each other; most figures have one.
    pub panels: Vec<Panel>,
    /// Numbers that the paper states, compared with ours, and some that it does not state.
    pub published: Vec<Published>,
}

/// One drawing: curves over the same axes.
#[derive(Clone, Debug, Serialize)]
pub struct Panel {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub series: Vec<Series>,
}

/// An axis of a drawing.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Axis {
    /// Quantity and unit.
    pub label: &'static str,
    /// Whether equal steps are equal factors.
    pub is_logarithmic: bool,
}

/// A curve.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The origin of its points.
    pub origin: Origin,
    /// x and y, by ascending x.
    pub points: Vec<(f64, f64)>,
}

/// The origin of points: a model's are drawn as a line, a simulation's as marks, a measurement's as both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A formula.
    Model,
    /// The design executed by key numbers.
    Simulation,
    /// Our own code, timed on this machine.
    Measurement,
}

/// A number that the paper states, if it does, and ours.
#[derive(Clone, Debug, Serialize)]
pub struct Published {
    /// Its name; snake_case with the unit last, like the names of metrics.
    pub name: String,
    /// The paper's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Our number.
    pub ours: f64,
}

impl Figure {
    /// The largest relative difference between a simulation and the model of the same name; `None` without simulations.
    pub fn deviation_max(&self) -> Option<f64> {
        let deviations = self.panels.iter().flat_map(|panel| {
            let simulated = panel.series.iter().filter(|series| series.origin == Origin::Simulation);
            simulated.filter_map(|series| {
                let model = |other: &&Series| other.origin == Origin::Model && other.name == series.name;
                series.deviation_max(panel.series.iter().find(model)?)
            })
        });
        deviations.reduce(f64::max)
    }

    /// What the figures come to: how many of the paper's numbers are near ours, and which one is furthest. A line.
    pub fn verdict(&self) -> String {
        let stated = self.published.iter().filter_map(|number| Some((number, number.published?)));
        let factor = |ours: f64, theirs: f64| (ours / theirs).max(theirs / ours);
        let compared: Vec<_> =
            stated.map(|(number, theirs)| (number, theirs, factor(number.ours, theirs))).collect();
        let Some((furthest, theirs, _)) = compared.iter().max_by(|one, other| one.2.total_cmp(&other.2))
        else {
            return format!("{}: the paper states no numbers.\n", self.id);
        };
        format!(
            "{}: {} of {} published numbers are within a quarter of ours; furthest is {}, {:.3} instead of \
             {theirs:.3}.\n",
            self.id,
            compared.iter().filter(|compared| compared.2 <= NEAR).count(),
            compared.len(),
            furthest.name,
            furthest.ours,
        )
    }
}

/// Factor up to which two numbers count as near.
const NEAR: f64 = 1.25;

impl Axis {
    /// A linear axis.
    pub const fn linear(label: &'static str) -> Self {
        Self { label, is_logarithmic: false }
    }

    /// A logarithmic axis.
    pub const fn logarithmic(label: &'static str) -> Self {
        Self { label, is_logarithmic: true }
    }
}

impl Series {
    /// A curve of a model.
    pub fn model(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Model, points }
    }

    /// Points of a simulation.
    pub fn simulation(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Simulation, points }
    }

    /// Points of a measurement.
    pub fn measurement(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), origin: Origin::Measurement, points }
    }

    /// The y at exactly this x.
    pub fn at(&self, x: f64) -> Option<f64> {
        self.points.iter().find(|point| point.0 == x).map(|point| point.1)
    }

    /// The largest relative difference between this curve and `other` at points of the same x; `None` if they share no
    /// x.
    pub fn deviation_max(&self, other: &Self) -> Option<f64> {
        let shared = self.points.iter().filter_map(|&(x, y)| Some((y / other.at(x)? - 1.0).abs()));
        shared.reduce(f64::max)
    }
}

impl Published {
    /// Our number and the paper's.
    pub fn new(name: impl Into<String>, published: f64, ours: f64) -> Self {
        Self { name: name.into(), published: Some(published), ours }
    }

    /// Our number, where the paper states none.
    pub fn ours(name: impl Into<String>, ours: f64) -> Self {
        Self { name: name.into(), published: None, ours }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_taken_where_both_have_points() {
        let model = Series::model("a", vec![(1.0, 10.0), (2.0, 20.0), (3.0, 30.0)]);
        let simulation = Series::simulation("b", vec![(2.0, 16.0), (3.0, 30.0), (4.0, 1.0)]);
        assert_eq!(model.deviation_max(&simulation), Some(0.25));
        assert_eq!(model.deviation_max(&Series::model("c", vec![(9.0, 1.0)])), None);
        assert_eq!(model.at(3.0), Some(30.0));
    }

    #[test]
    fn the_verdict_names_the_number_that_is_furthest() {
        let published =
            vec![Published::new("a", 10.0, 11.0), Published::new("b", 2.0, 1.0), Published::ours("c", 7.0)];
        let figure = Figure { id: "x-1", title: "", source: "", panels: Vec::new(), published };
        let verdict = figure.verdict();
        assert!(verdict.contains("1 of 2") && verdict.contains("b, 1.000 instead of 2.000"), "{verdict}");
        let none = Figure { published: Vec::new(), ..figure }.verdict();
        assert!(none.contains("no numbers"), "{none}");
    }
}
