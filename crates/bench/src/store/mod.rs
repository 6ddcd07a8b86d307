//! `bench store`: loads, reads, overwrites and scans a store, verifies every value and measures rates, latencies, CPU,
//! memory, space, and what reached the device.

mod config;
mod drive;
mod phase;
mod phases;
mod probe;
mod sampler;
mod sustain;
mod workload;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium::{Db, Keyspace};
use alluvium_model::Plan;
use serde_json::{Map, Value};

pub use config::StoreOptions;
pub use phase::Phase;
pub use workload::Workload;

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
}

/// Runs the phases in order. Measurements go to `report` as they are made.
///
/// # Errors
/// The first wrong answer, error of the store or unusable option. The database is then left where it is.
pub fn run(options: &StoreOptions, report: &mut Report) -> Result<(), BenchError> {
    options.validate()?;
    let bench = StoreBench::open(options)?;
    for phase in &options.phases {
        let measurement = match phase {
            Phase::Load => bench.load()?,
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
        };
        report.add(measurement)?;
    }
    bench.close()
}

impl StoreBench {
    fn open(options: &StoreOptions) -> Result<Self, BenchError> {
        let plan = Plan::named(&options.plan).map_err(|error| BenchError::Usage(error.to_string()))?;
        let directory = options.dir.join(SUBDIRECTORY);
        let exists = directory.exists();
        let loads = options.phases.contains(&Phase::Load);
        if exists && loads {
            std::fs::remove_dir_all(&directory)?;
        } else if !exists && !loads {
            let reason = format!("{} is not there: load it first, with --keep", directory.display());
            return Err(BenchError::Usage(reason));
        }
        std::fs::create_dir_all(&directory)?;
        let db = Db::builder(&directory)
            .plan(plan)
            .expected_items(options.items)
            .durability(options.durability()?)
            .open()?;
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
            options: options.clone(),
            db,
            directory,
        })
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

#[cfg(test)]
mod tests;
