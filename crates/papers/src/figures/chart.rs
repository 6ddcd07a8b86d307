//! A [`Figure`] as a drawing: one SVG with its panels above each other. Models are lines, simulations are marks,
//! measurements are both.

use std::ops::Range;

use alluvium_bench::BenchError;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::{Axis, Figure, Origin, Panel};

const WIDTH_PIXELS: u32 = 840;
const PANEL_HEIGHT_PIXELS: u32 = 480;
const TITLE_HEIGHT_PIXELS: i32 = 40;
/// Share of the height above the curves, for the legend.
const LEGEND_SHARE: f64 = 0.3;
const TEXT: (&str, u32) = ("sans-serif", 14);

/// Colours that people with any kind of colour vision can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(90, 90, 90),
];

/// Draws the figure.
pub fn svg(figure: &Figure) -> Result<String, BenchError> {
    let mut text = String::new();
    let height = TITLE_HEIGHT_PIXELS as u32 + PANEL_HEIGHT_PIXELS * figure.panels.len() as u32;
    {
        let area = SVGBackend::with_string(&mut text, (WIDTH_PIXELS, height)).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        let (title, rest) = area.split_vertically(TITLE_HEIGHT_PIXELS);
        title.titled(&format!("{} ({})", figure.title, figure.source), TEXT).map_err(failed)?;
        let panels = rest.split_evenly((figure.panels.len(), 1));
        for (panel, area) in figure.panels.iter().zip(panels) {
            draw_panel(panel, &area)?;
        }
        area.present().map_err(failed)?;
    }
    Ok(text)
}

fn failed(error: impl std::fmt::Display) -> BenchError {
    BenchError::Io(std::io::Error::other(format!("the drawing failed: {error}")))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw_panel(panel: &Panel, area: &Area<'_>) -> Result<(), BenchError> {
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let x = bounds(panel.x, 0.03, points().map(|point| point.0));
    let y = bounds(panel.y, LEGEND_SHARE, points().map(|point| point.1));
    match (panel.x.is_logarithmic, panel.y.is_logarithmic) {
        (false, false) => draw_curves(panel, area, x, y),
        (false, true) => draw_curves(panel, area, x, y.log_scale()),
        (true, false) => draw_curves(panel, area, x.log_scale(), y),
        (true, true) => draw_curves(panel, area, x.log_scale(), y.log_scale()),
    }
}

/// The range of an axis, with `room` at its end as a share: linear axes start at 0 unless all values are far from it.
fn bounds(axis: Axis, room: f64, values: impl Iterator<Item = f64>) -> Range<f64> {
    let (low, high) = values
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if axis.is_logarithmic {
        return low / 1.2..high * (high / low).powf(room);
    }
    let is_far_from_zero = low > (high - low) * 2.0;
    let start = if is_far_from_zero { low - (high - low) * 0.1 } else { low.min(0.0) };
    start..(high + (high - start) * room).max(start + 1e-9)
}

fn draw_curves<X, Y>(panel: &Panel, area: &Area<'_>, x: X, y: Y) -> Result<(), BenchError>
where
    X: AsRangedCoord<Value = f64>,
    Y: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(x, y)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .x_desc(panel.x.label)
        .y_desc(panel.y.label)
        .label_style(TEXT)
        .axis_desc_style(TEXT)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&|value| short(*value))
        .y_label_formatter(&|value| short(*value))
        .draw()
        .map_err(failed)?;
    // A simulation has the colour of the model of the same name.
    let mut names: Vec<&str> = Vec::new();
    for series in &panel.series {
        let number = names.iter().position(|name| *name == series.name).unwrap_or_else(|| {
            names.push(&series.name);
            names.len() - 1
        });
        let colour = COLOURS[number % COLOURS.len()];
        match series.origin {
            Origin::Model => {
                let line = LineSeries::new(series.points.iter().copied(), colour.stroke_width(2));
                let drawn = chart.draw_series(line).map_err(failed)?;
                drawn
                    .label(&series.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
            }
            Origin::Measurement => {
                let line = LineSeries::new(series.points.iter().copied(), colour).point_size(3);
                let drawn = chart.draw_series(line).map_err(failed)?;
                drawn
                    .label(&series.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour));
            }
            Origin::Simulation => {
                let marks = series.points.iter().map(|&point| Circle::new(point, 4, colour.filled()));
                let drawn = chart.draw_series(marks).map_err(failed)?;
                drawn
                    .label(format!("{}, simulated", series.name))
                    .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
            }
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(TEXT)
        .draw()
        .map_err(failed)
}

/// A number in a few characters: 1,000,000 as 1M.
fn short(value: f64) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "K")];
    let scale = scales.into_iter().find(|(scale, _)| value.abs() >= *scale);
    let (divided, suffix) = scale.map_or((value, ""), |(scale, suffix)| (value / scale, suffix));
    let rounded = if divided.abs() < 10.0 { format!("{divided:.4}") } else { format!("{divided:.2}") };
    let trimmed =
        if rounded.contains('.') { rounded.trim_end_matches('0').trim_end_matches('.') } else { &rounded };
    format!("{trimmed}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, 0.125, 1.0075, 25.82, 1_000.0, 3.3e7, 1e9].map(short);
        assert_eq!(texts, ["0", "0.125", "1.0075", "25.82", "1K", "33M", "1G"]);
    }

    #[test]
    fn axes_start_at_zero_unless_all_lies_far_from_it() {
        let linear = Axis::linear("x");
        assert_eq!(bounds(linear, 0.1, [2.0, 10.0].into_iter()).start, 0.0);
        assert!(bounds(linear, 0.1, [1.007, 1.009].into_iter()).start > 1.0);
        assert!(bounds(Axis::logarithmic("x"), 0.1, [1.0, 100.0].into_iter()).start > 0.0);
    }
}
