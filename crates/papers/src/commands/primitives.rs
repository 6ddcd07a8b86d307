//! The primitives: unique keys, their inverse, merged tables, density.

use alluvium_bench::{BenchError, Measurement};

use super::keys::KeyOptions;
use super::output::measurement;

/// Options of `unique`.
#[derive(Clone, Debug, clap::Args)]
pub struct UniqueOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Requests
    #[arg(long)]
    requests: f64,
}

/// Options of `unique-inverse`.
#[derive(Clone, Debug, clap::Args)]
pub struct UniqueInverseOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Different keys
    #[arg(long)]
    unique: f64,
}

/// Options of `merge`.
#[derive(Clone, Debug, clap::Args)]
pub struct MergeOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Keys of each table
    #[arg(long, value_delimiter = ',', required = true)]
    sizes: Vec<f64>,
}

/// Options of `dinterval`.
#[derive(Clone, Debug, clap::Args)]
pub struct DintervalOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Keys in the level
    #[arg(long)]
    size: f64,
}

/// Options of `density`.
#[derive(Clone, Debug, clap::Args)]
pub struct DensityOptions {
    #[command(flatten)]
    keys: KeyOptions,
    /// Keys in the level
    #[arg(long)]
    size: f64,
    /// Keys between the last compacted one and the one in question
    #[arg(long)]
    distance: f64,
}

/// Refuses negative counts.
fn not_negative(name: &str, value: f64) -> Result<f64, BenchError> {
    if value >= 0.0 {
        return Ok(value);
    }
    Err(BenchError::Usage(format!("--{name} is {value}: it must be 0 or more")))
}

impl UniqueOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let unique = keys.unique(not_negative("requests", self.requests)?);
        let measurement = self.keys.configure(measurement("unique"), keys.keys());
        Ok(vec![measurement.config("requests", self.requests).metric("unique_keys", unique)])
    }
}

impl UniqueInverseOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let requests = keys.unique_inverse(not_negative("unique", self.unique)?);
        let measurement = self.keys.configure(measurement("unique-inverse"), keys.keys());
        Ok(vec![measurement.config("unique", self.unique).metric("requests", requests)])
    }
}

impl MergeOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        for &size in &self.sizes {
            not_negative("sizes", size)?;
        }
        let measurement = self.keys.configure(measurement("merge"), keys.keys());
        let measurement = measurement.config("sizes", self.sizes.clone());
        Ok(vec![measurement.metric("unique_keys", keys.merge_all(&self.sizes))])
    }
}

impl DintervalOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let size = not_negative("size", self.size)?;
        let measurement = self.keys.configure(measurement("dinterval"), keys.keys());
        let measurement = measurement.config("size", size);
        Ok(vec![
            measurement
                .metric("dinterval", keys.dinterval(size))
                .metric("unique_inverse", keys.unique_inverse(size)),
        ])
    }
}

impl DensityOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let size = not_negative("size", self.size)?;
        let distance = not_negative("distance", self.distance)?;
        let interval = keys.dinterval(size);
        let measurement = self.keys.configure(measurement("density"), keys.keys());
        let measurement = measurement.config("size", size).config("distance", distance);
        Ok(vec![
            measurement.metric("dinterval", interval).metric("density", keys.density(interval, distance)),
        ])
    }
}
