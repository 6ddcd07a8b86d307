//! `bench store`: loads, reads, overwrites and scans a store, verifies every value and measures rates, latencies, CPU,
//! memory, space, and what reached the device. What the model predicts is computed and printed before each phase.

mod config;
mod drive;
mod phase;
mod phases;
mod prediction;
mod probe;
mod sampler;
mod sustain;
mod workload;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alluvium::{Db, Keyspace};
use alluvium_io::ProcessMemory;
use serde_json::{Map, Value};

pub use config::StoreOptions;
pub use phase::Phase;
pub use workload::Workload;

use prediction::Predictor;

use crate::device::Device;
use crate::error::BenchError;
use crate::measurement::Measurement;
use crate::report::Report;

/// The subdirectory of `--dir` that the benchmark makes and removes.
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
    /// What the process took before it opened the store.
    resident_bytes_before: Option<u64>,
}

/// Runs the phases in order. Measurements go to `report` as they are made.
///
/// # Errors
/// The first wrong answer, error of the store or unusable option. The database is then left where it is.
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
            Phase::All => bench.all()?,
            Phase::Miss => bench.miss()?,
            Phase::Update => bench.update()?,
            Phase::Mixed => bench.mixed()?,
            Phase::Scan => bench.scan()?,
            Phase::Sustain => bench.sustain()?,
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
            let reason = format!("{} is not there: load it first, with --keep", directory.display());
            return Err(BenchError::Usage(reason));
        }
        std::fs::create_dir_all(&directory)?;
        let resident_bytes_before = ProcessMemory::now().map(|memory| memory.resident_bytes);
        let db = open_database(&directory, options)?;
        let has_updates = options.phases.iter().any(|phase| phase.overwrites());
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
            resident_bytes_before,
            options: options.clone(),
            db,
            directory,
        })
    }

    /// Closes the database and opens it again; measures both, and the first get, which loads an index.
    fn reopen(self) -> Result<(Self, Measurement), BenchError> {
        let measurement = self.measurement("reopen");
        let Self {
            options,
            db,
            keyspace,
            workload,
            directory,
            device,
            config,
            streams,
            resident_bytes_before,
        } = self;
        drop(keyspace);
        let start = Instant::now();
        db.close()?;
        let closed = Instant::now();
        let db = open_database(&directory, &options)?;
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
        let reopened = Self {
            options,
            db,
            keyspace,
            workload,
            directory,
            device,
            config,
            streams,
            resident_bytes_before,
        };
        Ok((reopened, measurement))
    }

    fn close(self) -> Result<(), BenchError> {
        let Self { db, keyspace, directory, options, .. } = self;
        drop(keyspace);
        db.close()?;
        if !options.keep {
            std::fs::remove_dir_all(directory)?;
        }
        Ok(())
    }

    /// A number that no other phase's randomness has, so that phases choose independently.
    fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1 << 32, Ordering::Relaxed)
    }

    fn measurement(&self, case: &str) -> Measurement {
        let mut measurement = Measurement::new("store", case);
        measurement.config = self.config.clone();
        measurement
    }
}

fn open_database(directory: &Path, options: &StoreOptions) -> Result<Db, BenchError> {
    let mut builder = Db::builder(directory).plan(options.plan()?).expected_items(options.items);
    if let Some(bytes) = options.memory {
        builder = builder.process_memory_bytes_max(bytes.saturating_sub(options.latencies_bytes()));
    }
    Ok(builder.durability(options.durability()?).open()?)
}

#[cfg(test)]
mod tests;
