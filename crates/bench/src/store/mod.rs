//! `bench store`: loads, reads, overwrites and scans a store, verifies every value and measures rates, latencies, CPU,
//! memory, space, and the device's traffic. The model's predictions are computed and printed before each phase.

mod ahead_clock;
mod config;
mod degrade;
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
mod workload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use alluvium::{Db, Environment, Keyspace};
use alluvium_io::{Clock as _, FileStorage, IoOptions, ProcessMemory};
use serde_json::{Map, Value};

pub use config::StoreOptions;
pub use phase::Phase;
pub(crate) use probe::bytes_written;
pub use workload::Workload;

use ahead_clock::AheadClock;
use leaving::LIFETIME_MS;
use prediction::Predictor;

use crate::device::{self, Device};
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

/// The subdirectory of `--dir` that the benchmark creates and removes.
const SUBDIRECTORY: &str = "alluvium-bench-store";

/// A store under test.
struct StoreBench {
    options: StoreOptions,
    db: Db,
    keyspace: Keyspace,
    workload: Workload,
    directory: PathBuf,
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
}

/// Runs the phases in order. Measurements go to `report` as they are made.
///
/// # Errors
/// The first wrong answer, error of the store or unusable option. In that case the database is not removed.
pub fn run(options: &StoreOptions, report: &mut Report) -> Result<(), BenchError> {
    options.validate()?;
    let mut predictor = Predictor::new(options)?;
    let mut bench = StoreBench::open(options)?;
    for phase in &options.phases {
        let predicted = predictor.predict(*phase)?;
        eprint!("{}", prediction::announced(*phase, &predicted));
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
        report.add(Measurement { predicted, ..measurement })?;
    }
    bench.close()
}

impl StoreBench {
    fn open(options: &StoreOptions) -> Result<Self, BenchError> {
        let directory = options.dir.join(SUBDIRECTORY);
        let exists = directory.exists();
        let loads = options.phases.iter().any(|phase| phase.fills());
        if exists && loads {
            std::fs::remove_dir_all(&directory)?;
        } else if !exists && !loads {
            let reason = format!("{} does not exist: load it first, with --keep", directory.display());
            return Err(BenchError::Usage(reason));
        }
        std::fs::create_dir_all(&directory)?;
        if let Some(young) = options.young_directory()
            && young.exists()
            && loads
        {
            std::fs::remove_dir_all(young)?;
        }
        let resident_bytes_before = ProcessMemory::now().map(|memory| memory.resident_bytes);
        let clock = Arc::new(AheadClock::default());
        let db = open_database(&directory, options, &clock)?;
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
            device: Device::of(&directory)?,
            config: options.describe(),
            streams: AtomicU64::new(0),
            expires_at_ms: expires.then(|| clock.unix().as_millis() as u64 + LIFETIME_MS),
            clock,
            first_rates: Mutex::default(),
            resident_bytes_before,
            options: options.clone(),
            db,
            directory,
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
        let db = open_database(&directory, &options, &clock)?;
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
        let Self { db, keyspace, directory, options, .. } = self;
        drop(keyspace);
        db.close()?;
        if !options.keep {
            std::fs::remove_dir_all(directory)?;
            if let Some(young) = options.young_directory() {
                std::fs::remove_dir_all(young)?;
            }
        }
        Ok(())
    }

    /// The directories of the database.
    fn directories(&self) -> Vec<PathBuf> {
        std::iter::once(self.directory.clone()).chain(self.options.young_directory()).collect()
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
    let mut builder = Db::builder(directory)
        .read_wait(options.read_wait.all()[0])
        .plan(options.plan()?)
        .expected_items(options.items);
    if let Some(bytes) = options.memory {
        builder = builder.process_memory_bytes_max(bytes.saturating_sub(options.latencies_bytes()));
    }
    if let Some(young) = options.young_directory() {
        builder = builder.young_levels_dir(young, options.young_levels);
    }
    Ok(builder.durability(options.durability()?).environment(environment).open()?)
}

#[cfg(test)]
mod tests;
