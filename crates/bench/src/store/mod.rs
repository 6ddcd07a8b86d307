//! `bench store`: loads, reads, overwrites and scans a store, verifies every value and measures rates, latencies, CPU,
//! memory, space, and the device's traffic. The model's predictions are computed and printed before each phase.

mod ahead_clock;
mod config;
mod degrade;
mod display;
mod drive;
mod leaving;
mod phase;
mod phases;
mod prediction;
mod probe;
mod replan;
mod sampler;
mod stream;
mod sustain;
mod turns;
mod verdict;
mod workload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use alluvium::{Builder, Db, Environment, Keyspace};
use alluvium_io::{Clock as _, FileStorage, IoOptions, ProcessMemory};
use serde_json::{Map, Value};

pub use config::StoreOptions;
pub use phase::Phase;
pub use probe::bytes_written;
pub use workload::Workload;

use ahead_clock::AheadClock;
use display::Display;
use leaving::LIFETIME_MS;
use prediction::Predictor;

use crate::device::{self, Device};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;
use crate::work_directory::{WorkDirectories, WorkDirectory};

/// The subdirectory of `--dir` that the benchmark creates and removes.
const SUBDIRECTORY: &str = "alluvium-bench-store";

/// A store under test.
struct StoreBench {
    options: StoreOptions,
    db: Db,
    keyspace: Keyspace,
    workload: Workload,
    directory: WorkDirectory,
    young_directory: Option<WorkDirectory>,
    device: Device,
    config: Map<String, Value>,
    streams: AtomicU64,
    clock: Arc<AheadClock>,
    /// When expiring items expire, in milliseconds since 1970.
    expires_at_ms: Option<u64>,
    /// Rates of the first phase of each name.
    first_rates: Mutex<BTreeMap<String, f64>>,
    /// Memory of the process before it opened the store.
    resident_bytes_before: Option<u64>,
    display: Display,
    /// Answers of the store that were right.
    verified: AtomicU64,
}

/// Runs the phases in order. Measurements go to `report` as they are made.
///
/// # Errors
/// The first wrong answer, error of the store or unusable option. In that case the database is not removed. A figure
/// that differs from its prediction is no error: the verdict names it.
pub fn run(options: &StoreOptions, report: &mut Report) -> Result<(), BenchError> {
    options.validate()?;
    let mut predictor = Predictor::new(options)?;
    // Before the store is open: its memory would be taken for the program's.
    predictor.limit(builder(Path::new(""), options)?.limited_bytes()?);
    let mut bench = StoreBench::open(options, report.directories())?;
    for phase in &options.phases {
        let predicted = predictor.predict(*phase)?;
        eprint!("{}", prediction::announced(*phase, &predicted));
        bench.display.begin(phase.name());
        let verified_before = bench.verified.load(Ordering::Relaxed);
        let measurement = match phase {
            Phase::Load => bench.load()?,
            Phase::Ingest => bench.ingest()?,
            Phase::Settle => bench.background("settle", |_| Ok(()))?,
            Phase::Flush => bench.background("flush", |db| Ok(db.flush()?))?,
            Phase::Compact => bench.background("compact", |db| Ok(db.compact()?))?,
            Phase::Get => bench.get()?,
            Phase::Stream => bench.stream()?,
            Phase::All => bench.all()?,
            Phase::Miss => bench.miss()?,
            Phase::Update => bench.update()?,
            Phase::Mixed => bench.mixed()?,
            Phase::Scan => bench.scan()?,
            Phase::Sustain => bench.sustain()?,
            Phase::Expire => bench.expire()?,
            Phase::Delete => bench.delete()?,
            Phase::Snapshot => bench.snapshot()?,
            Phase::Degrade => bench.degrade(report)?,
            Phase::Replan(name) => {
                // Also for later openings.
                bench.options.plan = (*name).to_owned();
                bench.config = bench.options.describe();
                bench.replan(name)?
            }
            Phase::Reopen => {
                let (reopened, measurement) = bench.reopen()?;
                bench = reopened;
                measurement
            }
        };
        let verified = bench.verified.load(Ordering::Relaxed) - verified_before;
        let measurement = match verified {
            0 => measurement,
            _ => measurement.metric(verdict::ANSWERS, verified),
        };
        bench.display.end(measurement.metrics.get("ops_per_s").and_then(Value::as_f64));
        report.add(Measurement { predicted, ..measurement })?;
    }
    bench.close()?;
    report.conclude(verdict::verdict(report.measurements()));
    Ok(())
}

impl StoreBench {
    fn open(options: &StoreOptions, directories: &WorkDirectories) -> Result<Self, BenchError> {
        let loads = options.phases.iter().any(|phase| phase.fills());
        let work = |parent: &Path| {
            let directory = match loads {
                true => directories.create(parent, SUBDIRECTORY)?,
                false => directories.open(parent, SUBDIRECTORY)?,
            };
            if options.keep {
                directory.keep();
            }
            Ok::<_, BenchError>(directory)
        };
        let directory = work(&options.dir)?;
        let young_directory = options.young_dir.as_deref().map(work).transpose()?;
        let resident_bytes_before = ProcessMemory::now().map(|memory| memory.resident_bytes);
        let clock = Arc::new(AheadClock::default());
        let db = open_database(directory.path(), options, &clock)?;
        let has_updates = options.phases.iter().any(|phase| phase.overwrites());
        let expires = options.phases.contains(&Phase::Expire);
        Ok(Self {
            keyspace: db.keyspace("bench")?,
            workload: Workload::new(
                options.seed,
                options.items,
                options.key_size,
                options.value_size,
                has_updates,
            ),
            device: Device::of(directory.path())?,
            config: options.describe(),
            streams: AtomicU64::new(0),
            expires_at_ms: expires.then(|| clock.unix().as_millis() as u64 + LIFETIME_MS),
            clock,
            first_rates: Mutex::default(),
            resident_bytes_before,
            display: Display::default(),
            verified: AtomicU64::new(0),
            options: options.clone(),
            db,
            directory,
            young_directory,
        })
    }

    /// Closes the database and opens it again; measures both, and the first get, which loads an index.
    fn reopen(self) -> Result<(Self, Measurement), BenchError> {
        let measurement = self.measurement("reopen");
        let Self { options, db, keyspace, workload, directory, clock, .. } = self;
        drop(keyspace);
        let start = Instant::now();
        db.close()?;
        let closed = Instant::now();
        let db = open_database(directory.path(), &options, &clock)?;
        let opened = Instant::now();
        let keyspace = db.keyspace("bench")?;
        let mut key = Vec::new();
        workload.key(0, &mut key);
        let found = keyspace.get(&key)?.is_some();
        let measurement = measurement
            .metric("close_s", (closed - start).as_secs_f64())
            .metric("open_s", (opened - closed).as_secs_f64())
            .metric("first_get_us", opened.elapsed().as_secs_f64() * 1e6);
        if !found {
            return Err(BenchError::WrongAnswer("the first item is gone after a reopening".to_owned()));
        }
        Ok((Self { options, db, keyspace, workload, directory, clock, ..self }, measurement))
    }

    fn close(self) -> Result<(), BenchError> {
        let Self { db, keyspace, directory, young_directory, options, .. } = self;
        drop(keyspace);
        db.close()?;
        if !options.keep {
            directory.remove()?;
            young_directory.map(WorkDirectory::remove).transpose()?;
        }
        Ok(())
    }

    /// The directories of the database.
    fn directories(&self) -> Vec<PathBuf> {
        let both = std::iter::once(&self.directory).chain(&self.young_directory);
        both.map(|directory| directory.path().to_owned()).collect()
    }

    /// Bytes that the database takes on the device.
    fn allocated_bytes(&self) -> u64 {
        self.directories().iter().map(|directory| device::allocated_bytes(directory)).sum()
    }

    /// A number that no other phase's random generator uses, so that phases choose independently.
    fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1 << 32, Ordering::Relaxed)
    }

    fn measurement(&self, case: &str) -> Measurement {
        let mut measurement = Measurement::new("store", case);
        measurement.config = self.config.clone();
        measurement
    }
}

fn open_database(
    directory: &Path,
    options: &StoreOptions,
    clock: &Arc<AheadClock>,
) -> Result<Db, BenchError> {
    let storage = Arc::new(FileStorage::open(directory, IoOptions::default())?);
    let environment = Environment { clock: clock.clone(), ..Environment::over(storage) };
    Ok(builder(directory, options)?.environment(environment).open()?)
}

/// A database as the options say.
fn builder(directory: &Path, options: &StoreOptions) -> Result<Builder, BenchError> {
    let mut builder = Db::builder(directory)
        .read_wait(options.read_wait.all()[0])
        .plan(options.plan()?)
        .expected_items(options.expected_items()?);
    if let Some(bytes) = options.memory {
        builder = builder.process_memory_bytes_max(bytes.saturating_sub(options.latencies_bytes()));
    }
    if let Some(bytes) = options.row_cache {
        builder = builder.row_cache_bytes_max(bytes);
    }
    if let Some(young) = options.young_directory() {
        builder = builder.young_levels_dir(young, options.young_levels);
    }
    Ok(builder.durability(options.durability()?))
}

#[cfg(test)]
mod tests;
