//! The drawings of the page, as SVG: the frontier over memory and writes, and the plan's levels.

use std::fmt::Write as _;

use alluvium_model::Plan;
use alluvium_model::planner::{Candidate, Figures};

use super::html::escaped;
use super::report::Report;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 48.0;
/// Upper bounds of the classes of reads per lookup; the last class is unbounded.
const READ_CLASSES: [f64; 4] = [1.005, 1.05, 1.5, 2.5];
/// Maximum boxes of a level.
const BOXES_MAX: f64 = 24.0;
/// Height of a level.
const ROW: f64 = 58.0;

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

/// All points: memory to the right, writes upwards, reads as shade; plans that the engine executes have a ring.
pub fn frontier(report: &Report<'_>) -> String {
    let points = report.points();
    let named = report.planned.named.iter().map(|named| &named.candidate);
    let shown: Vec<&Figures> = points.iter().copied().chain(named).map(|point| &point.figures).collect();
    let across = Axis::over(shown.iter().map(|figures| figures.bytes_per_item), LEFT, WIDTH - RIGHT);
    let up = Axis::over(shown.iter().map(|figures| figures.write_amplification), HEIGHT - BOTTOM, TOP);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"frontier-title frontier-text\">\n\
         <title id=\"frontier-title\">Plans that no other plan beats</title>\n\
         <desc id=\"frontier-text\">Memory per item to the right and bytes written per byte put upward, both \
         logarithmic; darker marks in light mode read less. The table below has the same figures.</desc>\n"
    );
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
        let (radius, focus) = if is_chosen { (8.0, " tabindex=\"0\"") } else { (4.0, "") };
        let class = match (is_chosen, candidate.is_executable) {
            (true, _) => " chosen",
            (false, true) => " executed",
            (false, false) => "",
        };
        let _ = writeln!(
            svg,
            "<circle class=\"point tipped r{}{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"{focus}>\
             <title>{}</title></circle>",
            read_class(&candidate.figures),
            tip(candidate, None)
        );
    }
    for named in &report.planned.named {
        let (x, y) = place(&named.candidate);
        let near_edge = x > WIDTH - 130.0;
        let (text_x, anchor) = if near_edge { (x - 9.0, "end") } else { (x + 9.0, "start") };
        let _ = writeln!(
            svg,
            "<rect class=\"named tipped\" tabindex=\"0\" x=\"{:.1}\" y=\"{:.1}\" width=\"11\" height=\"11\" \
             pointer-events=\"all\"><title>{}</title></rect>\
             <text x=\"{text_x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            x - 5.5,
            y - 5.5,
            tip(&named.candidate, Some(named.name)),
            y - 8.0,
            named.name
        );
    }
    svg + "</svg>"
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
    let mut entries = vec![
        format!("<span>{}chosen</span>", circle("point r2 chosen")),
        format!("<span>{}executed by the engine</span>", circle("point r2 executed")),
        format!("<span>{}not executed yet</span>", circle("point r2")),
    ];
    for class in 0..=READ_CLASSES.len() {
        let text = match READ_CLASSES.get(class) {
            Some(bound) => format!("up to {bound} reads per lookup"),
            None => "more".to_owned(),
        };
        entries.push(format!("<span>{}{text}</span>", circle(&format!("point r{class}"))));
    }
    format!("<figcaption class=\"legend\">{}</figcaption>", entries.join(""))
}

/// The log and the levels, each with as many boxes as it has runs on average.
pub fn levels(report: &Report<'_>) -> String {
    let Plan::Levels { levels, .. } = &report.recommended.plan else {
        return "<p>One log, its items chained from a directory in memory.</p>".to_owned();
    };
    let states = &report.cost.levels;
    let height = ROW * (states.len() as f64 + 1.0) + 10.0;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"levels-title levels-text\">\n\
         <title id=\"levels-title\">Log and levels, young to old</title>\n<desc id=\"levels-text\">{}</desc>\n",
        escaped(&report.recommended.plan.to_string())
    );
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
    svg + "</svg>"
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
