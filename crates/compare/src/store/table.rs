//! The table for people.

use std::fmt::Write as _;

use super::kind::Kind;
use super::row::{Cell, Row};

/// All rows, and below them a verdict for each.
pub fn text(rows: &[Row], kinds: &[Kind]) -> String {
    let mut lines = vec![header(kinds)];
    lines.extend(rows.iter().map(|row| line(row, kinds)));
    let widths: Vec<usize> = (0..kinds.len() + 2)
        .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text.push('\n');
    for row in rows {
        let _ = writeln!(text, "{}", row.verdict());
    }
    text
}

fn header(kinds: &[Kind]) -> Vec<String> {
    let engines = kinds.iter().map(|kind| kind.title());
    std::iter::once("work".to_owned()).chain(engines).chain(["target".to_owned()]).collect()
}

fn line(row: &Row, kinds: &[Kind]) -> Vec<String> {
    let cell_of = |kind: &Kind| {
        row.cells.iter().find(|(other, _)| other == kind).map_or(String::new(), |(_, cell)| shown(cell))
    };
    let mut line = vec![format!("{} ({})", row.name, row.unit.name())];
    line.extend(kinds.iter().map(cell_of));
    line.push(row.target.text.clone());
    line
}

/// The figure, then in brackets what was read for one operation: requests where the engine counts them (`r`), and
/// KiB, and more.
fn shown(cell: &Cell) -> String {
    let mut details = Vec::new();
    details.extend(cell.reads.map(|reads| format!("{} r", significant(reads))));
    details.extend(cell.read_bytes.map(|bytes| format!("{} KiB", significant(bytes / 1024.0))));
    if !cell.note.is_empty() {
        details.push(cell.note.clone());
    }
    let figure = significant(cell.figure);
    if details.is_empty() { figure } else { format!("{figure} ({})", details.join(", ")) }
}

/// Three significant digits, or all before the point.
fn significant(number: f64) -> String {
    let decimals = match number.abs() {
        small if small < 0.000_5 => 0,
        small if small < 0.1 => 3,
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::row::{Target, Unit};

    #[test]
    fn engines_stand_side_by_side() {
        let cell =
            Cell { figure: 1234.5, reads: Some(0.0123), read_bytes: Some(2048.0), note: String::new() };
        let target = Target { text: "≥ 1,000".to_owned(), is_met: Some(true) };
        let row = Row {
            name: "gets".to_owned(),
            unit: Unit::KiloOperations,
            cells: vec![(Kind::Alluvium, cell)],
            target,
        };
        let text = text(&[row], &[Kind::Alluvium]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].split_whitespace().collect::<Vec<_>>(), ["work", "alluvium", "target"]);
        assert_eq!(lines[1], "gets (K/s)  1234 (0.012 r, 2.00 KiB)  ≥ 1,000");
        assert_eq!(lines[3], "gets: without a peer; target met (≥ 1,000)");
    }
}
