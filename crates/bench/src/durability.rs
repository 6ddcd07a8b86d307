//! `bench durability`: synced puts per second with one thread and with many, compared with the device's rate of syncs
//! into space that was written before.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alluvium::{Db, Durability};
use alluvium_io::calibrate::{Rate, measure_sync_appends};
use alluvium_io::{ALIGNMENT, FileStorage, IoOptions};

use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::measurement::Measurement;
use crate::report::Report;
use crate::store::Workload;
use crate::work_directory::default_parent;

/// Options of `bench durability`.
#[derive(Clone, Debug, clap::Args)]
pub struct DurabilityOptions {
    /// Numbers of threads to measure, one after another
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    pub threads: Vec<usize>,
    /// Synced puts of each thread
    #[arg(long, default_value_t = 20_000)]
    pub puts: u64,
    /// Seconds for measuring the raw device, before and after
    #[arg(long, default_value_t = 1.0)]
    pub raw_seconds: f64,
    /// Bytes of a value; keys have 16
    #[arg(long, default_value_t = 100)]
    pub value_size: usize,
    /// Seed of keys and values
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-durability`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-bench-durability";
/// Bytes of the file that the raw measurement overwrites repeatedly, like a recycled log segment.
const RECYCLED_BYTES: u64 = 16 << 20;

/// Measures each number of threads; then reopens the database and looks up each put.
///
/// # Errors
/// An acknowledged put that is missing after reopening is a wrong answer.
pub fn run(options: &DurabilityOptions, report: &mut Report) -> Result<(), BenchError> {
    if options.puts == 0 || options.threads.contains(&0) {
        return Err(BenchError::Usage("--puts and --threads must be at least 1".to_owned()));
    }
    if !(options.raw_seconds > 0.0 && options.raw_seconds < 1e6) {
        return Err(BenchError::Usage("--raw-seconds must be between 0 and a million".to_owned()));
    }
    for &threads in &options.threads {
        let directory = report.directories().create(&options.dir, SUBDIRECTORY)?;
        let raw_before = raw_syncs(directory.path(), options)?;
        let (elapsed, latencies) = synced_puts(options, threads, directory.path())?;
        let raw_after = raw_syncs(directory.path(), options)?;
        let raw = (raw_before.ops_per_s() + raw_after.ops_per_s()) / 2.0;
        let puts_per_s = (options.puts * threads as u64) as f64 / elapsed.as_secs_f64().max(1e-9);
        let measurement = Measurement::new("durability", &format!("threads_{threads}"))
            .config("puts_per_thread", options.puts)
            .config("value_bytes", options.value_size)
            .metric("ops_per_s", puts_per_s)
            .metric("raw_syncs_per_s", raw)
            .metric("raw_syncs_per_s_before", raw_before.ops_per_s())
            .metric("raw_syncs_per_s_after", raw_after.ops_per_s())
            .metric("raw_sync_p99_us", (raw_before.latency_us(0.99) + raw_after.latency_us(0.99)) / 2.0)
            .metric("puts_per_raw_sync", puts_per_s / raw);
        report.add(latencies.report(measurement))?;
        directory.remove()?;
    }
    Ok(())
}

fn synced_puts(
    options: &DurabilityOptions,
    threads: usize,
    directory: &Path,
) -> Result<(Duration, Latencies), BenchError> {
    let items = options.puts * threads as u64;
    let workload = Workload::new(options.seed, items, 16, options.value_size, false);
    let path = directory.join("store");
    let db = Db::builder(&path).durability(Durability::Sync).open()?;
    let keyspace = db.keyspace("bench")?;
    let is_stopped = AtomicBool::new(false);
    let start = Instant::now();
    let outcomes: Vec<Result<Latencies, BenchError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads as u64)
            .map(|thread| {
                let (workload, keyspace, is_stopped) = (&workload, &keyspace, &is_stopped);
                scope.spawn(move || {
                    let mut latencies = Latencies::default();
                    let (mut key, mut value) = (Vec::new(), Vec::new());
                    for put in 0..options.puts {
                        if is_stopped.load(Ordering::Relaxed) {
                            break;
                        }
                        let item = put * threads as u64 + thread;
                        workload.key(item, &mut key);
                        workload.value(item, 0, &mut value);
                        let begin = Instant::now();
                        let outcome = keyspace.insert(&key, &value);
                        latencies.record(begin.elapsed());
                        if let Err(error) = outcome {
                            is_stopped.store(true, Ordering::Relaxed);
                            return Err(error.into());
                        }
                    }
                    Ok(latencies)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let elapsed = start.elapsed();
    let mut latencies = Latencies::default();
    for outcome in outcomes {
        latencies.add(&outcome?);
    }
    drop(keyspace);
    db.close()?;
    check_all(&workload, &path)?;
    Ok((elapsed, latencies))
}

fn check_all(workload: &Workload, path: &Path) -> Result<(), BenchError> {
    let db = Db::open(path)?;
    let keyspace = db.keyspace("bench")?;
    let mut key = Vec::new();
    for item in 0..workload.items() {
        workload.key(item, &mut key);
        workload.check(item, 0, keyspace.get(&key)?.as_deref())?;
    }
    drop(keyspace);
    db.close()?;
    Ok(())
}

/// Writes and syncs one block at a time into space that was written before, so that neither the length nor the extents
/// of the file change: the best rate that any log can reach with one sync per put.
fn raw_syncs(directory: &Path, options: &DurabilityOptions) -> Result<Rate, BenchError> {
    let storage = FileStorage::create(directory.join("raw"), IoOptions::default())?;
    let duration = Duration::from_secs_f64(options.raw_seconds);
    Ok(measure_sync_appends(&storage, "raw", ALIGNMENT, RECYCLED_BYTES, duration)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_synced_put_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let options = DurabilityOptions {
            threads: vec![1, 3],
            puts: 20,
            raw_seconds: 0.01,
            value_size: 30,
            seed: 1,
            dir: directory.path().to_owned(),
        };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        assert_eq!(report.measurements().len(), 2);
        assert!(!directory.path().join(SUBDIRECTORY).exists());
    }
}
