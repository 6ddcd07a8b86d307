//! The output of measurements: one JSON object per line as they are made, or a table for people at the end.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;

use crate::measurement::Measurement;
use crate::work_directory::WorkDirectories;

/// Takes measurements and prints them.
#[derive(Debug)]
pub struct Report {
    is_json: bool,
    measurements: Vec<Measurement>,
    conclusion: String,
    directories: WorkDirectories,
}

impl Report {
    /// A report on standard output; with `is_json`, each measurement is printed at once as one line of JSON.
    pub fn new(is_json: bool) -> Self {
        Self {
            is_json,
            measurements: Vec::new(),
            conclusion: String::new(),
            directories: WorkDirectories::default(),
        }
    }

    /// Adds one measurement.
    pub fn add(&mut self, measurement: Measurement) -> io::Result<()> {
        if self.is_json {
            let mut out = io::stdout().lock();
            serde_json::to_writer(&mut out, &measurement)?;
            out.write_all(b"\n")?;
            out.flush()?;
        }
        self.measurements.push(measurement);
        Ok(())
    }

    /// Takes the text that is printed below the table.
    pub fn conclude(&mut self, conclusion: String) {
        self.conclusion = conclusion;
    }

    /// Creates the directories of the benchmark.
    pub fn directories(&self) -> &WorkDirectories {
        &self.directories
    }

    /// Prints the table and the conclusion, unless everything was printed as JSON. Call it also after a failure, since
    /// earlier results are still useful.
    pub fn finish(&self) -> io::Result<()> {
        if self.is_json || self.measurements.is_empty() {
            return Ok(());
        }
        let text = table(&self.measurements) + &self.conclusion;
        io::stdout().lock().write_all(text.as_bytes())
    }

    /// All measurements so far.
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }
}

/// Maximum cases next to each other before a new block of the table starts.
const CASES_ACROSS: usize = 7;

/// Measurements as a table: one row per result, one column per case.
pub fn table(measurements: &[Measurement]) -> String {
    let mut text = String::new();
    for group in measurements.chunk_by(|left, right| left.bench == right.bench && left.config == right.config)
    {
        let config: Vec<String> =
            group[0].config.iter().map(|(name, value)| format!("{name} {}", shown(value))).collect();
        let _ = writeln!(text, "{}: {}", group[0].bench, config.join(", "));
        for block in group.chunks(CASES_ACROSS) {
            write_block(&mut text, block);
        }
    }
    text
}

fn write_block(text: &mut String, block: &[Measurement]) {
    let mut names: Vec<&str> = Vec::new();
    for name in block.iter().flat_map(|measurement| measurement.metrics.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(block.iter().map(|measurement| measurement.case.clone()));
    for name in names {
        let mut row = vec![name.to_owned()];
        row.extend(
            block.iter().map(|measurement| measurement.metrics.get(name).map_or(String::new(), shown)),
        );
        rows.push(row);
        if block.iter().any(|measurement| measurement.predicted.contains_key(name)) {
            let predicted = block.iter().map(|measurement| measurement.predicted.get(name));
            let mut row = vec![format!("  {name}, predicted")];
            row.extend(predicted.map(|figure| figure.map_or(String::new(), shown)));
            rows.push(row);
        }
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = format!("  {:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(line, "  {cell:>width$}");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
}

/// A value for people: numbers with four significant digits, texts without quotes, a dash for null.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(integer), _) => integer.to_string(),
            (None, Some(real)) => significant(real),
            (None, None) => number.to_string(),
        },
        other => other.to_string(),
    }
}

fn significant(real: f64) -> String {
    let digits_before = if real == 0.0 { 1 } else { real.abs().log10().floor() as i32 + 1 };
    let decimals = (4 - digits_before).clamp(0, 6) as usize;
    format!("{real:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_stand_side_by_side() {
        let load = Measurement::new("store", "load").metric("ops_per_s", 1234567.8).metric("max_ms", 1.25);
        let get = Measurement::new("store", "get").metric("ops_per_s", 5).metric("reads", Value::Null);
        let text = table(&[load, get]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["load", "get"]);
        assert!(lines.contains(&vec!["ops_per_s", "1234568", "5"]), "{text}");
        assert!(lines.contains(&vec!["max_ms", "1.250"]), "{text}");
        assert!(lines.contains(&vec!["reads", "-"]), "{text}");
    }

    #[test]
    fn predictions_stand_below_what_was_measured() {
        let mut load = Measurement::new("store", "load").metric("writes", 5).metric("reads", 1);
        load.predicted.insert("writes".to_owned(), 4.into());
        let text = table(&[load, Measurement::new("store", "get").metric("reads", 2)]);
        let lines: Vec<&str> = text.lines().collect();
        let at = lines.iter().position(|line| line.trim_start().starts_with("writes, predicted")).unwrap();
        assert!(lines[at].ends_with(" 4") || lines[at].contains(" 4 "), "{text}");
        assert!(lines[at - 1].trim_start().starts_with("writes"));
    }

    #[test]
    fn four_digits_whatever_the_size() {
        assert_eq!(significant(0.0123456), "0.01235");
        assert_eq!(significant(123.456), "123.5");
        assert_eq!(significant(0.0), "0.000");
    }
}
