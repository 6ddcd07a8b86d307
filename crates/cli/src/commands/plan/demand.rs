//! The requirements for a plan, as options.

use std::path::{Path, PathBuf};

use alluvium::device::{self, DeviceFigures};
use alluvium_base::units::parse_bytes;
use alluvium_model::KeyDistribution;
use alluvium_model::plan_model::ItemSize;
use alluvium_model::planner::{Demand, OperationMix};

use crate::database::{Database, YoungOptions};
use crate::failure::Failure;

/// Number of items of a database whose sizes are measured.
const SAMPLE_ITEMS: usize = 4096;

/// Options that describe a demand.
#[derive(Clone, Debug, clap::Args)]
pub struct DemandOptions {
    /// Take number and size of the items, and the device's measurements, from this database
    #[arg(long, value_name = "DIR", conflicts_with_all = ["items", "key_size", "value_size"])]
    like: Option<PathBuf>,
    #[command(flatten)]
    young: YoungOptions,
    /// Items in the store, for example 1e8
    #[arg(long, default_value_t = 1e8)]
    items: f64,
    /// Mean bytes of a key
    #[arg(long, default_value_t = 16.0)]
    key_size: f64,
    /// Mean bytes of a value
    #[arg(long, default_value_t = 100.0)]
    value_size: f64,
    /// Maximum memory for finding items, for example 512MiB, or `any` [default: half a byte per item, at least 50 MB]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Relative frequencies of put, get, miss (a get of an absent key) and delete
    #[arg(long, default_value = "get=0.5,put=0.5")]
    mix: String,
    /// Zipf skew of the keys' popularity, 0 to 16; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Share of the gets that ask for absent keys
    #[arg(long, default_value_t = 0.0)]
    miss_share: f64,
    /// Share of the puts that add new keys
    #[arg(long, default_value_t = 0.0)]
    fresh_share: f64,
    /// Result of `alluvium calibrate`: its file, or the directory that contains it
    #[arg(long, value_name = "FILE|DIR")]
    device: Option<PathBuf>,
    /// Maximum bytes written to the device per byte put
    #[arg(long)]
    max_write_amplification: Option<f64>,
    /// Maximum device reads per lookup
    #[arg(long)]
    max_reads: Option<f64>,
    /// Weight of the device's time for writing
    #[arg(long, default_value_t = 1.0)]
    write_weight: f64,
    /// Weight of the device's time for lookups
    #[arg(long, default_value_t = 1.0)]
    read_weight: f64,
    /// Value of a byte of memory per item, in microseconds per operation
    #[arg(long, default_value_t = 0.0)]
    memory_weight: f64,
}

impl DemandOptions {
    /// The demand that the options describe.
    pub fn demand(&self) -> Result<Demand, Failure> {
        let (items, item, kept) = self.items()?;
        let device = match &self.device {
            Some(path) => read_device(path)?,
            None => kept.unwrap_or_default(),
        };
        let keys = KeyDistribution::zipf(items, self.skew)?;
        let mut demand = Demand::new(keys, item, device).with_mix(self.mix()?);
        demand.workload.fresh_share = self.fresh_share;
        if let Some(memory) = &self.memory {
            demand.limits.memory_bytes = match memory.as_str() {
                "any" => f64::INFINITY,
                size => parse_bytes(size).map_err(Failure::Usage)? as f64,
            };
        }
        demand.limits.write_amplification = self.max_write_amplification.unwrap_or(f64::INFINITY);
        demand.limits.reads_per_lookup = self.max_reads.unwrap_or(f64::INFINITY);
        demand.weights.write = self.write_weight;
        demand.weights.read = self.read_weight;
        demand.weights.memory_us = self.memory_weight;
        Ok(demand)
    }

    /// Number and size of the items, and the device's measurements if a database has them.
    fn items(&self) -> Result<(f64, ItemSize, Option<DeviceFigures>), Failure> {
        match &self.like {
            Some(path) => like(path, &self.young),
            None => {
                let item =
                    ItemSize { key_bytes: self.key_size, value_bytes: self.value_size, deviation_bytes: 0.0 };
                Ok((self.items, item, None))
            }
        }
    }

    fn mix(&self) -> Result<OperationMix, Failure> {
        let mut mix = parse_mix(&self.mix)?;
        if !(0.0..=1.0).contains(&self.miss_share) {
            return Err(Failure::Usage("--miss-share must be between 0 and 1".to_owned()));
        }
        let gets = mix.get;
        mix.get = gets * (1.0 - self.miss_share);
        mix.miss += gets * self.miss_share;
        Ok(mix)
    }
}

fn parse_mix(text: &str) -> Result<OperationMix, Failure> {
    let mut mix = OperationMix { put: 0.0, get: 0.0, miss: 0.0, delete: 0.0 };
    for part in text.split(',') {
        let parsed = part.split_once('=').and_then(|(name, share)| {
            let share: f64 = share.trim().parse().ok()?;
            let place = match name.trim() {
                "put" => &mut mix.put,
                "get" => &mut mix.get,
                "miss" => &mut mix.miss,
                "delete" => &mut mix.delete,
                _ => return None,
            };
            *place = share;
            Some(())
        });
        if parsed.is_none() {
            return Err(Failure::Usage(format!(
                "--mix {text:?}: say for example get=0.9,put=0.1,delete=0.01"
            )));
        }
    }
    Ok(mix)
}

fn read_device(path: &Path) -> Result<DeviceFigures, Failure> {
    if path.is_dir() {
        return device::read_directory(path)?.ok_or_else(|| {
            Failure::Failed(format!("nothing was measured in {}: run alluvium calibrate", path.display()))
        });
    }
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", path.display())))?;
    Ok(device::parse(&path.display().to_string(), &bytes)?)
}

/// Number and sizes of a database's items: all are counted, and some of each keyspace are measured.
fn like(path: &Path, young: &YoungOptions) -> Result<(f64, ItemSize, Option<DeviceFigures>), Failure> {
    let db = Database { database: path.to_owned(), young: young.clone() }.open_existing()?;
    let items = db.stats().items;
    let (mut count, mut key_bytes, mut bytes, mut squares) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for name in db.keyspace_names() {
        for entry in db.keyspace(&name)?.iter().take(SAMPLE_ITEMS) {
            let (key, value) = entry?;
            let size = (key.len() + value.len()) as f64;
            count += 1.0;
            key_bytes += key.len() as f64;
            bytes += size;
            squares += size * size;
        }
    }
    db.close()?;
    if count == 0.0 {
        return Err(Failure::Failed(format!("{} has no items to plan for", path.display())));
    }
    let (mean, key_bytes) = (bytes / count, key_bytes / count);
    let item = ItemSize {
        key_bytes,
        value_bytes: mean - key_bytes,
        deviation_bytes: (squares / count - mean * mean).max(0.0).sqrt(),
    };
    Ok((items.max(1) as f64, item, device::read_directory(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_name_their_operations() {
        let mix = parse_mix("get=0.9, put=0.1,delete=0.01").unwrap_or_default();
        assert_eq!(mix, OperationMix { put: 0.1, get: 0.9, miss: 0.0, delete: 0.01 });
        for wrong in ["", "get", "get=x", "fetch=1", "get=1,,put=1"] {
            assert!(matches!(parse_mix(wrong), Err(Failure::Usage(_))), "{wrong}");
        }
    }
}
