//! `bench hot-key`: one item that is overwritten again and again. Its obsolete versions fill the log; the disk should
//! hold little more than the item when nothing is written any more.

use std::path::PathBuf;
use std::time::Instant;

use alluvium::{Db, Durability};
use alluvium_base::units;
use indicatif::ProgressBar;

use crate::device::allocated_bytes;
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;
use crate::settled::settled_bytes;
use crate::work_directory::default_parent;

/// Options of `bench hot-key`.
#[derive(Clone, Debug, clap::Args)]
pub struct HotKeyOptions {
    /// How often the item is overwritten
    #[arg(long, default_value_t = 1_000_000)]
    pub puts: u64,
    /// Bytes of the value; the key has 16
    #[arg(long, default_value = "100", value_parser = units::parse_bytes)]
    pub value_size: u64,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-hot-key`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-hot-key";
const KEY: [u8; 16] = *b"the only hot key";
/// Puts between two looks at the progress bar.
const PUTS_SHOWN: u64 = 1 << 12;

/// Overwrites the item, and waits until background work is done.
///
/// # Errors
/// A value that is not the last one is a wrong answer.
pub fn run(options: &HotKeyOptions, report: &mut Report) -> Result<(), BenchError> {
    let directory = report.directories().create(&options.dir, SUBDIRECTORY)?;
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open()?;
    let keyspace = db.keyspace("hot")?;
    let measurement = |case: &str| {
        Measurement::new("hot-key", case)
            .config("puts", options.puts)
            .config("value_bytes", options.value_size)
            .config("durability", "buffered")
    };
    let bar = ProgressBar::new(options.puts);
    let mut value = vec![0; options.value_size as usize];
    let mut latencies = Latencies::default();
    let (mut disk_max, start) = (0, Instant::now());
    let mut last = start;
    for put in 0..options.puts {
        Random::new(put, 0).fill(&mut value);
        keyspace.insert(KEY, &value)?;
        let now = Instant::now();
        latencies.record(now - last);
        last = now;
        if put % PUTS_SHOWN == 0 {
            bar.set_position(put);
            disk_max = allocated_bytes(directory.path()).max(disk_max);
            last = Instant::now();
        }
    }
    let elapsed = start.elapsed();
    bar.finish_and_clear();
    let puts = measurement("put")
        .metric("puts_per_s", options.puts as f64 / elapsed.as_secs_f64())
        .metric("disk_bytes_max", disk_max);
    report.add(latencies.report(puts))?;
    let bytes = settled_bytes(&db, directory.path())?;
    if options.puts > 0 && keyspace.get(KEY)?.as_ref() != Some(&value) {
        return Err(BenchError::WrongAnswer("the hot key has not the value that was put last".to_owned()));
    }
    report.add(measurement("settled").metric("disk_bytes", bytes))?;
    report.conclude(format!(
        "{} puts of one key leave {:.1} MB of disk; at most {:.1} MB were taken.\n",
        options.puts,
        bytes as f64 / 1e6,
        disk_max as f64 / 1e6
    ));
    drop(keyspace);
    db.close()?;
    Ok(directory.remove()?)
}

/// A small run, so that the benchmark keeps working.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_verifies_the_last_value_and_cleans_up() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path().to_owned();
        let mut report = Report::new(false);
        run(&HotKeyOptions { puts: 5_000, value_size: 20, dir: dir.clone() }, &mut report).unwrap();
        assert_eq!(report.measurements().len(), 2);
        assert!(!dir.join(SUBDIRECTORY).exists());
    }
}
