//! Scans of groups of items that share a prefix: a semi-sorted keyspace compared with RocksDB.
//!
//! Both stores get the same items in the same order, in which groups take turns, so that no group is contiguous in what
//! is written. Both have the same memory, bypass the page cache when reading, and are settled before they are read.
//! Then they take turns with the same groups; every item of every scan is verified.

mod items;
mod ours;
mod rocks;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use alluvium_base::units::parse_bytes;
use alluvium_bench::process::cpu_time;
use alluvium_bench::random::Random;
use alluvium_bench::work_directory::default_parent;
use alluvium_bench::{BenchError, Measurement, Report};
use alluvium_io::DeviceCounters;

use items::{Items, Seen};
use ours::Alluvium;
use rocks::RocksDb;

/// Options of `alluvium-compare prefix-scan`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Items in each store
    #[arg(long, default_value_t = 20_000_000)]
    items: u64,
    /// Items that share a prefix
    #[arg(long, default_value_t = 128)]
    group_size: u64,
    /// Bytes of a value; keys have 8 bytes of prefix and 8 of suffix
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// Memory of each store: indexes, filters, caches and write buffers
    #[arg(long, default_value = "64MiB", value_parser = parse_bytes)]
    memory: u64,
    /// Plan of the semi-sorted keyspace
    #[arg(long, default_value = "semi-sorted")]
    plan: String,
    /// Bytes of RocksDB's blocks
    #[arg(long, default_value = "16KiB", value_parser = parse_bytes)]
    block_size: u64,
    /// Groups scanned in each round
    #[arg(long, default_value_t = 2_000)]
    scans: u64,
    /// Number of rounds; medians are printed
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Leave out RocksDB
    #[arg(long)]
    alone: bool,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for the stores, which get a subdirectory `alluvium-compare-prefix-scan`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    dir: PathBuf,
}

const SUBDIRECTORY: &str = "alluvium-compare-prefix-scan";

/// A compared store.
trait Subject {
    /// Its name in results.
    fn name(&self) -> &'static str;
    /// Inserts an item without waiting for the device.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;
    /// Returns once no background work is left.
    fn settle(&mut self) -> Result<(), BenchError>;
    /// Calls `visit` with all items of a prefix.
    fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), BenchError>;
    /// Bytes of memory of filters, indexes, caches and write buffers.
    fn memory_bytes(&self) -> u64;
    /// Adds further results of its own.
    fn add_figures(&self, measurement: Measurement) -> Measurement {
        measurement
    }
}

/// The results of one store in all rounds.
#[derive(Default)]
struct Tally {
    scans_per_s: Vec<f64>,
    cpu: Duration,
    reads: u64,
    read_bytes: u64,
    slowest: Duration,
}

/// Loads the stores and lets them scan in turns.
///
/// # Errors
/// [`BenchError`]: the first wrong answer, or another failure.
pub fn run(options: &Options) -> Result<(), BenchError> {
    if options.items == 0 || options.group_size == 0 {
        return Err(BenchError::Usage("there are no items".to_owned()));
    }
    let directory = options.dir.join(SUBDIRECTORY);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    let items = Items::new(options.items, options.group_size, options.value_size);
    let mut report = Report::new(options.json);
    let mut subjects: Vec<Box<dyn Subject>> =
        vec![Box::new(Alluvium::open(&directory.join("alluvium"), options)?)];
    if !options.alone {
        subjects.push(Box::new(RocksDb::open(&directory.join("rocksdb"), options)?));
    }
    for subject in &mut subjects {
        report.add(load(subject.as_mut(), &items, options, &directory)?)?;
    }
    let mut tallies: Vec<Tally> = subjects.iter().map(|_| Tally::default()).collect();
    let mut random = Random::new(options.seed, 1);
    for round in 0..options.rounds.max(1) {
        let groups: Vec<u64> = (0..options.scans).map(|_| random.below(items.groups())).collect();
        for turn in 0..subjects.len() {
            let place = (turn + round) % subjects.len();
            scan_all(subjects[place].as_ref(), &items, &groups, &directory, &mut tallies[place])?;
        }
    }
    let first = tallies[0].scans_per_s.clone();
    for (subject, tally) in subjects.iter().zip(tallies) {
        let scans = (options.scans * options.rounds.max(1) as u64) as f64;
        let ratios = first.iter().zip(&tally.scans_per_s).map(|(ours, other)| ours / other).collect();
        let scans_per_s = median(tally.scans_per_s);
        let measurement = measurement(subject.as_ref(), options, "scan")
            .metric("scans_per_s", scans_per_s)
            .metric("items_per_s", scans_per_s * items.group_size(0) as f64)
            .metric("alluvium_ratio", median(ratios))
            .metric("cpu_us_per_scan", 1e6 * tally.cpu.as_secs_f64() / scans)
            .metric("device_reads_per_scan", tally.reads as f64 / scans)
            .metric("device_read_bytes_per_scan", tally.read_bytes as f64 / scans)
            .metric("scan_max_ms", 1e3 * tally.slowest.as_secs_f64())
            .metric("memory_bytes", subject.memory_bytes());
        report.add(measurement)?;
    }
    report.finish()?;
    drop(subjects);
    std::fs::remove_dir_all(directory)?;
    Ok(())
}

fn measurement(subject: &dyn Subject, options: &Options, case: &str) -> Measurement {
    Measurement::new("compare_prefix_scan", case)
        .config("store", subject.name())
        .config("items", options.items)
        .config("group_size", options.group_size)
        .config("value_bytes", options.value_size)
        .config("memory_limit_bytes", options.memory)
}

fn load(
    subject: &mut dyn Subject,
    items: &Items,
    options: &Options,
    directory: &std::path::Path,
) -> Result<Measurement, BenchError> {
    let before = DeviceCounters::of(directory);
    let (start, cpu) = (Instant::now(), cpu_time());
    let mut slowest = Duration::ZERO;
    let mut last = start;
    items.for_each(|key, value| {
        subject.put(key, value)?;
        let now = Instant::now();
        slowest = slowest.max(now - last);
        last = now;
        Ok(())
    })?;
    let loaded = start.elapsed();
    subject.settle()?;
    let settled = start.elapsed();
    let written =
        DeviceCounters::of(directory).zip(before).map(|(now, before)| now.since(&before).written_bytes);
    let bytes = (options.items * (items::KEY_BYTES + options.value_size) as u64) as f64;
    let measurement = measurement(subject, options, "load")
        .metric("ops_per_s", options.items as f64 / loaded.as_secs_f64())
        .metric("settle_s", (settled - loaded).as_secs_f64())
        .metric("cpu_us_per_op", 1e6 * (cpu_time() - cpu).as_secs_f64() / options.items as f64)
        .metric("max_ms", 1e3 * slowest.as_secs_f64())
        .metric("write_amplification", written.map(|bytes_written| bytes_written as f64 / bytes))
        .metric("memory_bytes", subject.memory_bytes());
    Ok(subject.add_figures(measurement))
}

fn scan_all(
    subject: &dyn Subject,
    items: &Items,
    groups: &[u64],
    directory: &std::path::Path,
    tally: &mut Tally,
) -> Result<(), BenchError> {
    let before = DeviceCounters::of(directory);
    let (start, cpu) = (Instant::now(), cpu_time());
    let mut last = start;
    for &group in groups {
        let prefix = items.prefix(group);
        let mut seen = Seen::new(items, group);
        subject.scan(&prefix, &mut |key, value| seen.see(key, value))?;
        seen.end()?;
        let now = Instant::now();
        tally.slowest = tally.slowest.max(now - last);
        last = now;
    }
    tally.scans_per_s.push(groups.len() as f64 / start.elapsed().as_secs_f64());
    tally.cpu += cpu_time() - cpu;
    if let Some(read) = DeviceCounters::of(directory).zip(before).map(|(now, before)| now.since(&before)) {
        tally.reads += read.reads;
        tally.read_bytes += read.read_bytes;
    }
    Ok(())
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
