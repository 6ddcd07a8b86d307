//! How far a phase has come, on standard error: a bar on a terminal, elsewhere a line now and then.

use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::drive::Drive;

/// Shortest time between two lines.
const LINE_INTERVAL_MIN: Duration = Duration::from_secs(2);
/// A line waits for this share of the time that the phase has taken so far. So a phase of an hour has 40 lines.
const LINE_INTERVAL_SHARE: f64 = 0.2;

/// Shows the phases of a benchmark one after the other.
#[derive(Debug)]
pub struct Display(Mutex<Phase>);

/// The phase in progress.
#[derive(Debug)]
struct Phase {
    name: &'static str,
    start: Instant,
    /// When the next line is due, from the start on.
    next_line: Duration,
    /// Operations of drives that have ended.
    done: u64,
    /// Operations of all drives, if there are several.
    expected: Option<u64>,
}

/// Shows one drive.
#[derive(Debug)]
pub struct DriveDisplay<'a> {
    display: &'a Display,
    /// Invisible where standard error is no terminal.
    bar: ProgressBar,
    start: Instant,
    operations: u64,
    deadline: Option<Duration>,
    settles: bool,
    done: u64,
}

impl Default for Display {
    fn default() -> Self {
        Self(Mutex::new(Phase::new("")))
    }
}

impl Display {
    /// A phase begins.
    pub fn begin(&self, name: &'static str) {
        *self.phase() = Phase::new(name);
    }

    /// The phase consists of several drives with this total number of operations.
    pub fn expect(&self, operations: u64) {
        self.phase().expected = Some(operations);
    }

    /// The phase has ended, with this rate.
    pub fn end(&self, ops_per_s: Option<f64>) {
        let phase = self.phase();
        if ProgressBar::new(0).is_hidden() {
            let rate = ops_per_s.map_or(String::new(), |rate| format!(", {}", shown_rate(rate)));
            eprintln!("{}: done after {:.1} s{rate}", phase.name, phase.start.elapsed().as_secs_f64());
        }
    }

    /// A part of the phase begins.
    pub fn drive(&self, drive: &Drive) -> DriveDisplay<'_> {
        let bar = ProgressBar::new(if drive.deadline.is_some() { 0 } else { drive.operations });
        let template = "{msg:>8} [{elapsed_precise}] {wide_bar} {human_pos}/{human_len} {per_sec}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(drive.name);
        DriveDisplay {
            display: self,
            bar,
            start: Instant::now(),
            operations: drive.operations,
            deadline: drive.deadline,
            settles: drive.settles,
            done: 0,
        }
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl DriveDisplay<'_> {
    /// So many operations are done.
    pub fn show(&mut self, operations: u64) {
        self.done = operations;
        self.bar.set_position(operations);
        if !self.bar.is_hidden() {
            return;
        }
        let mut phase = self.display.phase();
        let elapsed = phase.start.elapsed();
        if phase.is_line_due(elapsed) {
            eprintln!("{}: {}, {:.0} s", phase.name, self.state(&phase), elapsed.as_secs_f64());
        }
    }

    /// The part has ended.
    pub fn end(self) {
        self.bar.finish_and_clear();
        self.display.phase().done += self.done;
    }

    /// How far the phase is, in words.
    fn state(&self, phase: &Phase) -> String {
        let elapsed = self.start.elapsed().as_secs_f64();
        let rate = shown_rate(self.done as f64 / elapsed.max(1e-9));
        let deadline = self.deadline.map(|deadline| deadline.as_secs_f64());
        if self.settles
            && (self.done >= self.operations || deadline.is_some_and(|deadline| elapsed > deadline))
        {
            return "all done, waits for background work".to_owned();
        }
        if let Some(deadline) = deadline {
            return format!("{elapsed:.0} s of {deadline:.0} s, {rate}");
        }
        let expected = phase.expected.unwrap_or(phase.done + self.operations);
        let percent = (phase.done + self.done) as f64 * 100.0 / expected.max(1) as f64;
        format!("{:.0} % of {expected}, {rate}", percent.min(100.0))
    }
}

impl Phase {
    fn new(name: &'static str) -> Self {
        Self { name, start: Instant::now(), next_line: LINE_INTERVAL_MIN, done: 0, expected: None }
    }

    /// Whether a line is due; then the next one is due later.
    fn is_line_due(&mut self, elapsed: Duration) -> bool {
        if elapsed < self.next_line {
            return false;
        }
        self.next_line = elapsed + elapsed.mul_f64(LINE_INTERVAL_SHARE).max(LINE_INTERVAL_MIN);
        true
    }
}

/// A rate for people.
fn shown_rate(per_s: f64) -> String {
    match per_s {
        1e6.. => format!("{:.2} M/s", per_s / 1e6),
        1e3.. => format!("{:.0} K/s", per_s / 1e3),
        _ => format!("{per_s:.0} /s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_rare() {
        let mut phase = Phase::new("load");
        let lines = |phase: &mut Phase, seconds: std::ops::Range<u64>| {
            seconds.filter(|second| phase.is_line_due(Duration::from_secs(*second))).count()
        };
        assert_eq!(lines(&mut phase, 0..10), 4);
        assert!((30..45).contains(&lines(&mut phase, 10..3_600)));
        assert!(lines(&mut phase, 3_600..86_400) < 20);
    }

    #[test]
    fn a_part_counts_as_part_of_its_phase() {
        let display = Display::default();
        display.begin("get");
        display.expect(400);
        let drive = Drive {
            name: "get",
            threads: 1,
            operations: 100,
            deadline: None,
            settles: false,
            inserts: false,
            is_first_come: false,
        };
        let mut part = display.drive(&drive);
        part.show(100);
        part.end();
        let mut part = display.drive(&drive);
        part.show(50);
        let state = part.state(&display.phase());
        assert!(state.starts_with("38 % of 400, "), "{state}");
        let mut writing = display.drive(&Drive { settles: true, ..drive });
        writing.show(100);
        assert!(writing.state(&display.phase()).contains("background"));
        let mut timed = display.drive(&Drive { deadline: Some(Duration::from_secs(9)), ..drive });
        timed.show(3);
        assert!(timed.state(&display.phase()).starts_with("0 s of 9 s, "));
    }

    #[test]
    fn rates_have_few_digits() {
        assert_eq!(
            [12.3, 68_400.0, 1_234_567.0].map(shown_rate),
            ["12 /s", "68 K/s", "1.23 M/s"].map(str::to_owned)
        );
    }
}
