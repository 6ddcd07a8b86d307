//! `--json`, and how statistics are printed for people.

use std::io::{self, Write};

use alluvium::Stats;
use alluvium_base::units::format_bytes;
use serde::Serialize;

use crate::failure::Failure;

/// Whether the output is for programs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct JsonOption {
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

impl JsonOption {
    /// Prints `object` on a line of its own, or otherwise `text`, which may be empty and includes its line ends.
    pub fn print(self, object: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            serde_json::to_writer(&mut out, object)?;
            writeln!(out)?;
        } else {
            out.write_all(text().as_bytes())?;
        }
        out.flush()?;
        Ok(())
    }
}

/// Prints a notice for the user that is not a failure, independent of what goes to standard output.
pub fn warn(text: &str) {
    eprintln!("alluvium: {text}");
}

/// Levels, memory, changes of plans and traffic.
pub fn statistics(stats: &Stats) -> String {
    let (levels, memory, changes, traffic) =
        (levels(stats), memory(stats), plan_changes(stats), traffic(stats));
    format!("{levels}\n{memory}\n{changes}{traffic}")
}

/// One line per level, under a heading.
pub fn levels(stats: &Stats) -> String {
    let mut lines =
        vec!["level         runs  tables       items        bytes     filters     indexes".to_owned()];
    lines.extend(stats.levels.iter().map(|level| {
        let [bytes, filters, indexes] =
            [level.bytes, level.filter_memory, level.index_memory].map(format_bytes);
        let counts = format!("{:<12} {:>5} {:>7} {:>11}", level.name, level.runs, level.tables, level.items);
        format!("{counts} {bytes:>12} {filters:>11} {indexes:>11}")
    }));
    block(&lines)
}

/// One line per kind of memory, under a heading.
pub fn memory(stats: &Stats) -> String {
    let memory = &stats.memory;
    let parts = [
        ("log index", memory.log_index),
        ("filters", memory.filters),
        ("indexes", memory.indexes),
        ("tables", memory.tables),
        ("pages", memory.pages),
        ("write buffer", memory.write_buffer),
        ("merge buffer", memory.merge_buffer),
        ("I/O buffers", memory.io_buffers),
        ("iterators", memory.iterators),
        ("blob buffer", memory.blob_buffer),
        ("all", memory.total()),
    ];
    let mut lines = vec!["memory              bytes".to_owned()];
    lines.extend(parts.iter().map(|(name, bytes)| format!("{name:<14} {:>10}", format_bytes(*bytes))));
    block(&lines)
}

/// What remains to be moved since plans changed, followed by an empty line; empty if nothing remains.
pub fn plan_changes(stats: &Stats) -> String {
    let mut lines = Vec::new();
    for change in &stats.plan_changes {
        let left = format!("{} tables, {}", change.tables_left, format_bytes(change.bytes_left));
        lines.push(format!("the plan of keyspace {} changes: {left} left to move", change.keyspace));
        lines.push(format!("  from {}", change.from));
        lines.push(format!("  to   {}", change.to));
        lines.extend(change.levels.iter().filter(|level| level.tables_left > 0).map(|level| {
            let bytes = format_bytes(level.bytes_left);
            format!("  {:<12} {:>7} {bytes:>12}", level.name, level.tables_left)
        }));
    }
    if lines.is_empty() { String::new() } else { block(&lines) + "\n" }
}

/// Operations since the database was opened, and work that is due.
fn traffic(stats: &Stats) -> String {
    let traffic = &stats.traffic;
    let rows = [
        ("puts", traffic.puts.to_string()),
        ("bytes put", format_bytes(traffic.bytes_put)),
        ("gets", traffic.gets.to_string()),
        ("page reads", traffic.page_reads.to_string()),
        ("log written", format_bytes(traffic.log_bytes_written)),
        ("runs written", format_bytes(traffic.hash_bytes_written)),
        ("levels written", format_bytes(traffic.sorted_bytes_written)),
        ("blobs written", format_bytes(traffic.blob_bytes_written)),
        ("blobs rewritten", format_bytes(traffic.blob_bytes_relocated)),
        ("blob reads", traffic.blob_reads.to_string()),
        ("blob files", stats.blobs.files.to_string()),
        ("blob bytes", format_bytes(stats.blobs.bytes)),
        ("live of these", format_bytes(stats.blobs.live_bytes)),
        ("syncs of the log", traffic.log_syncs.to_string()),
        ("freezes", traffic.freezes.to_string()),
        ("merges", traffic.merges.to_string()),
        ("frozen segments", stats.frozen_segments.to_string()),
        ("merge pressure", format!("{:.2}", stats.merge_pressure)),
        ("delay of a put", format!("{:.1} us", stats.put_delay_ns as f64 / 1e3)),
    ];
    let mut lines = vec!["traffic           since opened".to_owned()];
    lines.extend(rows.iter().map(|(name, value)| format!("{name:<17} {value:>12}")));
    block(&lines)
}

fn block(lines: &[String]) -> String {
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_line_a_row() {
        let stats = Stats { levels: vec![alluvium::LevelStats::default(); 2], ..Stats::default() };
        assert_eq!(levels(&stats).lines().count(), 3);
        assert_eq!(memory(&stats).lines().count(), 12);
        assert_eq!(traffic(&stats).lines().count(), 20);
        assert_eq!(plan_changes(&stats), "");
        let left = alluvium::LeftStats { name: "level 1".to_owned(), tables_left: 2, bytes_left: 3 };
        let levels = vec![left, alluvium::LeftStats::default()];
        let change = alluvium::PlanChangeStats { levels, ..alluvium::PlanChangeStats::default() };
        let stats = Stats { plan_changes: vec![change], ..stats };
        assert_eq!(plan_changes(&stats).lines().count(), 5);
    }
}
