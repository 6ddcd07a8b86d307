//! The drawings of the page, as SVG: the frontier over memory and writes, and the plan's levels.

use std::fmt::Write as _;

use alluvium_model::planner::{Candidate, Figures};
use alluvium_model::{LevelsPlan, Plan};

use super::html::escaped;
use super::report::Report;

pub const WIDTH: f64 = 900.0;
pub const HEIGHT: f64 = 460.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 48.0;
/// Upper bounds of the classes of reads per lookup; the last class is unbounded.
const READ_CLASSES: [f64; 4] = [1.005, 1.05, 1.5, 2.5];
/// Maximum boxes of a level.
const BOXES_MAX: f64 = 24.0;
/// Approximate width of a letter.
const LETTER: f64 = 7.5;
/// Height of a label.
const LABEL_HEIGHT: f64 = 14.0;
/// How much higher than the middle of its mark a label is.
const RISE: f64 = 8.0;
/// Height of a level.
const ROW: f64 = 58.0;

/// Whether marks say what they are when they are pointed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    Tipped,
    Plain,
}

/// A logarithmic axis.
struct Axis {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, 1.0) };
        Self { low: low / 1.1, high: high * 1.1, start, end }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.start + share.min(1.0) * (self.end - self.start)
    }

    /// 1, 2 and 5 of each power of ten.
    fn ticks(&self) -> Vec<f64> {
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let values = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(decade)));
        values.filter(|value| *value >= self.low && *value <= self.high).collect()
    }
}

/// The frontier as a figure of the page.
pub fn frontier_figure(report: &Report<'_>) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"frontier-title frontier-text\">\n\
         <title id=\"frontier-title\">Plans that no other plan beats</title>\n\
         <desc id=\"frontier-text\">Memory per item to the right and bytes written per byte put upward, both \
         logarithmic; darker marks in light mode read less. The table below has the same figures.</desc>\n{}</svg>",
        frontier(report, Marks::Tipped)
    )
}

/// All points: memory to the right, writes upwards, reads as shade; plans that the engine executes have a ring.
pub fn frontier(report: &Report<'_>, marks: Marks) -> String {
    let points = report.points();
    let named = report.planned.named.iter().map(|named| &named.candidate);
    let shown: Vec<&Figures> = points.iter().copied().chain(named).map(|point| &point.figures).collect();
    let across = Axis::over(shown.iter().map(|figures| figures.bytes_per_item), LEFT, WIDTH - RIGHT);
    let up = Axis::over(shown.iter().map(|figures| figures.write_amplification), HEIGHT - BOTTOM, TOP);
    let mut svg = String::new();
    axes(&mut svg, &across, &up);
    let limit = report.demand.limits.memory_bytes / report.items();
    if limit.is_finite() && limit > across.low && limit < across.high {
        let x = across.at(limit);
        let bottom = HEIGHT - BOTTOM;
        let _ = writeln!(
            svg,
            "<line class=\"limit\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\">memory limit</text>",
            x + 5.0,
            TOP + 10.0
        );
    }
    let place = |candidate: &Candidate| {
        (across.at(candidate.figures.bytes_per_item), up.at(candidate.figures.write_amplification))
    };
    // The chosen plan comes first and is drawn last, above the others.
    for candidate in points.iter().rev() {
        let (x, y) = place(candidate);
        let is_chosen = candidate.plan == report.recommended.plan;
        let radius = if is_chosen { 8.0 } else { 4.0 };
        let class = match (is_chosen, candidate.is_executable) {
            (true, _) => " chosen",
            (false, true) => " executed",
            (false, false) => "",
        };
        let _ = writeln!(
            svg,
            "<circle class=\"point r{}{class}{}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"{}",
            read_class(&candidate.figures),
            marks.class(),
            marks.end("circle", is_chosen, || tip(candidate, None))
        );
    }
    let mut labels = Labels::default();
    for named in &report.planned.named {
        let (x, y) = place(&named.candidate);
        let label = labels.place(x, y, LETTER * named.name.len() as f64);
        let (text_x, anchor) = if label.is_left { (x - 9.0, "end") } else { (x + 9.0, "start") };
        if label.baseline != y - RISE {
            let middle = label.baseline - 4.0;
            let _ = writeln!(
                svg,
                "<line class=\"leader\" x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{text_x:.1}\" y2=\"{middle:.1}\"/>"
            );
        }
        let _ = writeln!(
            svg,
            "<rect class=\"named{}\" x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" pointer-events=\"all\"{}\
             <text x=\"{text_x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            marks.class(),
            x - 5.5,
            y - 5.5,
            marks.end("rect", true, || tip(&named.candidate, Some(named.name))),
            label.baseline,
            named.name
        );
    }
    svg
}

/// The labels that are drawn so far.
#[derive(Default)]
struct Labels(Vec<Label>);

/// Where a label is.
#[derive(Clone, Copy, Debug)]
struct Label {
    left: f64,
    width: f64,
    baseline: f64,
    /// Whether it is on the left of its mark.
    is_left: bool,
}

impl Label {
    fn covers(&self, other: &Self) -> bool {
        self.left < other.left + other.width
            && other.left < self.left + self.width
            && (other.baseline - self.baseline).abs() < LABEL_HEIGHT
    }
}

impl Labels {
    /// Places a label of this width for the mark at (`x`, `y`): near it, and where it covers no other.
    fn place(&mut self, x: f64, y: f64, width: f64) -> Label {
        let rows = [0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0].map(|row| y - RISE + row * LABEL_HEIGHT);
        let both = rows.map(|baseline| {
            [(x + 9.0, false), (x - 9.0 - width, true)].map(|(left, is_left)| Label {
                left,
                width,
                baseline,
                is_left,
            })
        });
        let mut inside = both.into_iter().flatten().filter(|label| {
            label.left >= LEFT && label.left + width <= WIDTH && label.baseline < HEIGHT - BOTTOM
        });
        let first = inside.clone().next().unwrap_or(both[0][1]);
        let label = inside.find(|label| self.0.iter().all(|other| !label.covers(other))).unwrap_or(first);
        self.0.push(label);
        label
    }
}

impl Marks {
    /// The class of a mark, besides its others.
    fn class(self) -> &'static str {
        match self {
            Self::Tipped => " tipped",
            Self::Plain => "",
        }
    }

    /// The end of an element that is a mark, with its tip.
    fn end(self, element: &str, takes_focus: bool, tip: impl FnOnce() -> String) -> String {
        match self {
            Self::Tipped => {
                let focus = if takes_focus { " tabindex=\"0\"" } else { "" };
                format!("{focus}><title>{}</title></{element}>", tip())
            }
            Self::Plain => "/>".to_owned(),
        }
    }
}

fn axes(svg: &mut String, across: &Axis, up: &Axis) {
    let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    for value in across.ticks() {
        let x = across.at(value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value}</text>",
            bottom + 16.0
        );
    }
    for value in up.ticks() {
        let y = up.at(value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            LEFT - 6.0,
            y + 4.0
        );
    }
    let (middle_x, middle_y) = ((LEFT + right) / 2.0, (TOP + bottom) / 2.0);
    let _ = writeln!(
        svg,
        "<text x=\"{middle_x}\" y=\"{}\" text-anchor=\"middle\">bytes of memory per item</text>\
         <text x=\"14\" y=\"{middle_y}\" text-anchor=\"middle\" transform=\"rotate(-90 14 {middle_y})\">bytes \
         written per byte put</text>",
        HEIGHT - 10.0
    );
}

/// Explains the marks.
pub fn legend() -> String {
    let circle = |class: &str| {
        format!(
            "<svg viewBox=\"0 0 16 16\" aria-hidden=\"true\">\
             <circle class=\"{class}\" cx=\"8\" cy=\"8\" r=\"6\"/></svg>"
        )
    };
    let entries = kinds().into_iter().chain(shades());
    let entries: String =
        entries.map(|(class, text)| format!("<span>{}{text}</span>", circle(&class))).collect();
    format!("<figcaption class=\"legend\">{entries}</figcaption>")
}

/// The classes of circles by what the engine does with the plan, and what they mean.
pub fn kinds() -> Vec<(String, String)> {
    let kinds = [
        ("point r2 chosen", "chosen"),
        ("point r2 executed", "executed by the engine"),
        ("point r2", "not executed yet"),
    ];
    kinds.map(|(class, text)| (class.to_owned(), text.to_owned())).to_vec()
}

/// The classes of circles by reads, and what they mean.
pub fn shades() -> Vec<(String, String)> {
    let text = |class: usize| match READ_CLASSES.get(class) {
        Some(bound) => format!("up to {bound} reads per lookup"),
        None => "more".to_owned(),
    };
    (0..=READ_CLASSES.len()).map(|class| (format!("point r{class}"), text(class))).collect()
}

/// The levels as a figure of the page.
pub fn levels_figure(report: &Report<'_>) -> String {
    let Some((svg, height)) = levels(report) else {
        return "<p>One log, its items chained from a directory in memory.</p>".to_owned();
    };
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"levels-title levels-text\">\n\
         <title id=\"levels-title\">Log and levels, young to old</title>\n<desc id=\"levels-text\">{}</desc>\n\
         {svg}</svg>",
        escaped(&report.recommended.plan.to_string())
    )
}

/// The log and the levels, each with as many boxes as it has runs on average; and how high that is. Returns `None` if
/// the plan has no levels.
pub fn levels(report: &Report<'_>) -> Option<(String, f64)> {
    let Plan::Levels(LevelsPlan { levels, .. }) = &report.recommended.plan else { return None };
    let states = &report.cost.levels;
    let height = ROW * (states.len() as f64 + 1.0) + 10.0;
    let mut svg = String::new();
    let largest = states.iter().map(|state| state.records).fold(1.0, f64::max);
    row(&mut svg, 0, ("log", "append-only, index in memory"), 1.0, 90.0, "log");
    for (number, (level, state)) in levels.iter().zip(states).enumerate() {
        let is_last = number + 1 == states.len();
        // Sizes span orders of magnitude, so the width follows the logarithm.
        let width = (WIDTH - 20.0) * (1.0 + state.records).ln() / (1.0 + largest).ln();
        let name = format!("level {number}: {:.2} runs, {:.3e} records", state.runs, state.records);
        let class = if is_last { "old" } else { "" };
        row(&mut svg, number + 1, (&name, &level.to_string()), state.runs, width.max(90.0), class);
    }
    Some((svg, height))
}

fn row(svg: &mut String, number: usize, text: (&str, &str), runs: f64, width: f64, class: &str) {
    let top = 6.0 + ROW * number as f64;
    let (name, note) = text;
    let _ = writeln!(
        svg,
        "<text x=\"10\" y=\"{:.1}\">{}<tspan class=\"tick\" dx=\"10\">{}</tspan></text>",
        top + 13.0,
        escaped(name),
        escaped(note)
    );
    let boxes = runs.round().clamp(1.0, BOXES_MAX);
    for position in 0..boxes as u32 {
        let _ = writeln!(
            svg,
            "<rect class=\"box {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"24\" rx=\"3\"/>",
            10.0 + width / boxes * f64::from(position),
            top + 20.0,
            width / boxes
        );
    }
}

fn read_class(figures: &Figures) -> usize {
    READ_CLASSES.iter().filter(|bound| figures.reads_per_lookup > **bound).count()
}

fn tip(candidate: &Candidate, name: Option<&str>) -> String {
    let figures = &candidate.figures;
    let name = name.map_or(String::new(), |name| format!("{name}\n"));
    let executed = if candidate.is_executable { "executed by the engine" } else { "not executed yet" };
    escaped(&format!(
        "{name}{}\n{:.3} bytes written per byte put\n{:.4} reads per lookup\n{:.3} bytes of memory per item\n\
         {executed}",
        candidate.plan, figures.write_amplification, figures.reads_per_lookup, figures.bytes_per_item
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_marks_do_not_cover_each_other() {
        let mut labels = Labels::default();
        let places = [(100.0, 50.0), (120.0, 50.0), (110.0, 52.0), (300.0, 50.0)];
        let placed = places.map(|(x, y)| labels.place(x, y, 60.0));
        assert!(!placed[0].is_left && placed[0].baseline == 50.0 - RISE);
        assert!(!placed[3].is_left && placed[3].baseline == 50.0 - RISE);
        assert!(labels.place(WIDTH - 20.0, 50.0, 60.0).is_left);
        for (number, label) in placed.iter().enumerate() {
            assert!(placed[..number].iter().all(|other| !label.covers(other)));
        }
    }
}
