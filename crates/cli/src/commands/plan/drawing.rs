//! An answer as one drawing: its figures, the plan's levels, and the frontier. The same answer gives the same bytes.

use std::fmt::Write as _;

use super::html::escaped;
use super::picture::{self, HEIGHT, Marks, WIDTH};
use super::report::Report;

const STYLE: &str = include_str!("picture.css");
/// What only this drawing has.
const OWN_STYLE: &str = "svg .head{font-size:20px;font-weight:600}svg .part{font-size:15px;font-weight:600}\
                         svg .plan{font-family:ui-monospace,monospace}.ground{fill:var(--ground)}\
                         .sheet{fill:var(--card);stroke:var(--line)}";
/// Space at all sides.
const MARGIN: f64 = 20.0;
/// Letters of a plan that fit on a line.
const PLAN_LETTERS: usize = 105;
/// Letters of a figure's name that fit on a line.
const NAME_LETTERS: usize = 18;
const LINE: f64 = 18.0;
const CARD_HEIGHT: f64 = 76.0;
/// Between two parts.
const GAP: f64 = 16.0;

/// Draws from the top to the bottom.
struct Canvas {
    svg: String,
    top: f64,
}

/// The drawing as a file.
pub fn drawing(report: &Report<'_>) -> String {
    let mut canvas = Canvas { svg: String::new(), top: MARGIN };
    let title = format!("Plan for {}", report.subject());
    canvas.text("head", &title, 26.0);
    for line in wrapped(&report.recommended.plan.to_string(), PLAN_LETTERS) {
        canvas.text("plan", &line, LINE);
    }
    canvas.top += GAP;
    canvas.cards(report);
    if let Some((levels, height)) = picture::levels(report) {
        canvas.text("part", "The plan as levels", 24.0);
        canvas.sheet(&levels, height);
    }
    canvas.text("part", "What no other plan beats", 24.0);
    canvas.sheet(&picture::frontier(report, Marks::Plain), HEIGHT);
    let square =
        |x: f64, y: f64| format!("<rect class=\"named\" x=\"{x}\" y=\"{y}\" width=\"11\" height=\"11\"/>");
    let named_x = canvas.legend(&picture::kinds());
    canvas.svg += &square(named_x, canvas.top + 1.0);
    let _ = writeln!(
        canvas.svg,
        "<text class=\"tick\" x=\"{}\" y=\"{}\">named plan</text>",
        named_x + 18.0,
        canvas.top + 11.0
    );
    canvas.top += 22.0;
    canvas.legend(&picture::shades());
    canvas.top += 22.0 + MARGIN;
    let (width, height) = (WIDTH + 2.0 * MARGIN, canvas.top);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<style>\n{STYLE}{OWN_STYLE}\n</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n{}</svg>\n",
        canvas.svg
    )
}

impl Canvas {
    /// A line of text.
    fn text(&mut self, class: &str, text: &str, height: f64) {
        let (y, text) = (self.top + height - 8.0, escaped(text));
        let _ = writeln!(self.svg, "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\">{text}</text>");
        self.top += height;
    }

    /// A picture on a sheet of its own.
    fn sheet(&mut self, picture: &str, height: f64) {
        let top = self.top;
        let _ = writeln!(
            self.svg,
            "<rect class=\"sheet\" x=\"{MARGIN}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\" rx=\"6\"/>\n\
             <g transform=\"translate({MARGIN} {top})\">\n{picture}</g>"
        );
        self.top += height + GAP;
    }

    /// The figures that come first, side by side.
    fn cards(&mut self, report: &Report<'_>) {
        let cards = report.headline();
        let step = (WIDTH + GAP) / cards.len() as f64;
        let (top, width) = (self.top, step - GAP);
        for (number, (figure, name)) in cards.iter().enumerate() {
            let x = MARGIN + step * number as f64;
            let _ = writeln!(
                self.svg,
                "<rect class=\"sheet\" x=\"{x:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{CARD_HEIGHT}\" \
                 rx=\"6\"/><text class=\"head\" x=\"{:.1}\" y=\"{}\">{}</text>",
                x + 10.0,
                top + 28.0,
                escaped(figure)
            );
            for (line, text) in wrapped(name, NAME_LETTERS).iter().enumerate() {
                let y = top + 47.0 + 16.0 * line as f64;
                let _ = writeln!(
                    self.svg,
                    "<text class=\"tick\" x=\"{:.1}\" y=\"{y}\">{}</text>",
                    x + 10.0,
                    escaped(text)
                );
            }
        }
        self.top += CARD_HEIGHT + GAP;
    }

    /// Circles and what they mean, side by side; where the next one would be.
    fn legend(&mut self, entries: &[(String, String)]) -> f64 {
        let mut x = MARGIN;
        for (class, text) in entries {
            let _ = writeln!(
                self.svg,
                "<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"5\"/>\
                 <text class=\"tick\" x=\"{}\" y=\"{}\">{text}</text>",
                x + 6.0,
                self.top + 7.0,
                x + 18.0,
                self.top + 11.0
            );
            x += 36.0 + 6.4 * text.len() as f64;
        }
        x
    }
}

/// Lines of at most this number of letters, broken at spaces.
fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if lines[last].len() + 1 + word.len() <= letters {
            lines[last] = format!("{} {word}", lines[last]);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("memory per item, 332 MiB in all", 18), ["memory per item,", "332 MiB in all"]);
        assert_eq!(wrapped("unbreakable", 3), ["unbreakable"]);
    }
}
