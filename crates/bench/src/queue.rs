//! `bench queue`: a queue of constant length. Each step puts an item at its tail, gets the one at its head and removes
//! it, so items live as long as the queue is.

use std::path::PathBuf;
use std::time::Instant;

use alluvium::{Db, Durability, Keyspace, TrafficStats};
use alluvium_base::units;
use indicatif::ProgressBar;

use crate::device::allocated_bytes;
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;
use crate::settled::settled_bytes;
use crate::work_directory::{WorkDirectory, default_parent};

/// Options of `bench queue`.
#[derive(Clone, Debug, clap::Args)]
pub struct QueueOptions {
    /// Items in the queue
    #[arg(long, default_value_t = 100_000)]
    pub length: u64,
    /// Steps: each puts an item, gets the oldest one and removes it
    #[arg(long, default_value_t = 1_000_000)]
    pub steps: u64,
    /// Bytes of a value; a key has 16
    #[arg(long, default_value = "100", value_parser = units::parse_bytes)]
    pub value_size: u64,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-queue`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-queue";
/// Steps between two looks at the progress bar.
const STEPS_SHOWN: u64 = 1 << 12;

struct QueueBench<'a> {
    options: &'a QueueOptions,
    db: Db,
    keyspace: Keyspace,
    directory: WorkDirectory,
    value: Vec<u8>,
}

/// Fills the queue, makes the steps, and waits until background work is done.
///
/// # Errors
/// A head that is not the item put there is a wrong answer.
pub fn run(options: &QueueOptions, report: &mut Report) -> Result<(), BenchError> {
    let directory = report.directories().create(&options.dir, SUBDIRECTORY)?;
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open()?;
    let keyspace = db.keyspace("queue")?;
    let value = vec![0; options.value_size as usize];
    let mut bench = QueueBench { options, db, keyspace, directory, value };
    report.add(bench.fill()?)?;
    let steps = bench.step()?;
    let settled = bench.settle()?;
    report.conclude(verdict(&steps, &settled));
    report.add(steps)?;
    report.add(settled)?;
    let QueueBench { db, keyspace, directory, .. } = bench;
    drop(keyspace);
    db.close()?;
    Ok(directory.remove()?)
}

impl QueueBench<'_> {
    fn measurement(&self, case: &str) -> Measurement {
        Measurement::new("queue", case)
            .config("length", self.options.length)
            .config("value_bytes", self.options.value_size)
            .config("durability", "buffered")
    }

    /// Makes the value of an item.
    fn fill_value(&mut self, item: u64) {
        Random::new(item, 0).fill(&mut self.value);
    }

    fn push(&mut self, item: u64) -> Result<(), BenchError> {
        self.fill_value(item);
        Ok(self.keyspace.insert(key(item), &self.value)?)
    }

    fn pop(&mut self, item: u64) -> Result<(), BenchError> {
        self.fill_value(item);
        let is_right = self.keyspace.get_with(key(item), |value| value == self.value)?;
        if is_right != Some(true) {
            let what = if is_right.is_none() { "is missing" } else { "has another value" };
            return Err(BenchError::WrongAnswer(format!("item {item} at the head of the queue {what}")));
        }
        Ok(self.keyspace.remove(key(item))?)
    }

    fn fill(&mut self) -> Result<Measurement, BenchError> {
        let start = Instant::now();
        (0..self.options.length).try_for_each(|item| self.push(item))?;
        let rate = self.options.length as f64 / start.elapsed().as_secs_f64();
        Ok(self.measurement("fill").metric("puts_per_s", rate))
    }

    fn step(&mut self) -> Result<Measurement, BenchError> {
        let before = self.db.stats().traffic;
        let bar = ProgressBar::new(self.options.steps);
        let mut latencies = Latencies::default();
        let (mut disk_max, start) = (0, Instant::now());
        let mut last = start;
        for step in 0..self.options.steps {
            self.push(self.options.length + step)?;
            self.pop(step)?;
            let now = Instant::now();
            latencies.record(now - last);
            last = now;
            if step % STEPS_SHOWN == 0 {
                bar.set_position(step);
                disk_max = allocated_bytes(self.directory.path()).max(disk_max);
                last = Instant::now();
            }
        }
        let elapsed = start.elapsed();
        bar.finish_and_clear();
        let traffic = self.db.stats().traffic;
        let each = |count: u64| count as f64 / self.options.steps.max(1) as f64;
        let measurement = self
            .measurement("steps")
            .metric("steps_per_s", self.options.steps as f64 / elapsed.as_secs_f64())
            .metric("reads_per_step", each(traffic.page_reads - before.page_reads))
            .metric("table_bytes_per_step", each(table_bytes(&traffic) - table_bytes(&before)))
            .metric("freezes", traffic.freezes - before.freezes)
            .metric("merges", traffic.merges - before.merges)
            .metric("disk_bytes_max", disk_max);
        Ok(latencies.report(measurement))
    }

    fn settle(&mut self) -> Result<Measurement, BenchError> {
        let bytes = settled_bytes(&self.db, self.directory.path())?;
        Ok(self.measurement("settled").metric("disk_bytes", bytes))
    }
}

fn table_bytes(traffic: &TrafficStats) -> u64 {
    traffic.hash_bytes_written + traffic.sorted_bytes_written
}

/// What the figures come to.
fn verdict(steps: &Measurement, settled: &Measurement) -> String {
    let figure = |measurement: &Measurement, name: &str| {
        measurement.metrics.get(name).and_then(serde_json::Value::as_f64).unwrap_or(0.0)
    };
    let reads = figure(steps, "reads_per_step");
    let head = match reads {
        ..0.01 => "the head was found in memory".to_owned(),
        _ => format!("the head took {reads:.2} reads of the device"),
    };
    format!(
        "{head}; {:.0} thousand items a second passed the queue, each for {:.0} bytes of tables. {:.1} MB of disk \
         remain.\n",
        figure(steps, "steps_per_s") / 1e3,
        figure(steps, "table_bytes_per_step"),
        figure(settled, "disk_bytes") / 1e6,
    )
}

fn key(item: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[8..].copy_from_slice(&item.to_be_bytes());
    key
}

/// A small run, so that the benchmark keeps working.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_verifies_every_head_and_cleans_up() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_owned();
        let options = QueueOptions { length: 500, steps: 2_000, value_size: 20, dir: dir.clone() };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        assert_eq!(report.measurements().len(), 3);
        assert_eq!(report.measurements()[1].metrics["reads_per_step"], 0.0);
        assert!(!dir.join(SUBDIRECTORY).exists());
    }
}
