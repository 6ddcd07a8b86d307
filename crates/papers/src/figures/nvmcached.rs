//! What NVMcached's figures share: caches in a file, beside one in memory.
//!
//! Ordinary memory stands for persistent memory, as in the thesis: the files are in `/dev/shm`. Of the thesis's caches,
//! MC-DRAM is our cache in memory, MC-NVM is our cache in a file that flushes item and descriptor with each set, and
//! NVMcached is the same cache with the flushes that it needs, without and with a write cache. MC-NVLRU, which flushes
//! the list of its replacement too, has no counterpart here: our cache has no such list.

use std::path::{Path, PathBuf};

use alluvium_bench::cache::speed::refused;
use alluvium_bench::{BenchError, WorkDirectory};
use alluvium_cache::{Builder, Cache, Survive, SurvivingBuilder, SurvivingCache};

use super::Scale;
use super::replay::{AfterMiss, Request, Values, load, millions_per_s, replay_together};

/// Bytes besides key and value that are assumed for each item.
pub const OVERHEAD_BYTES: usize = 64;
/// The share of the memory that a write cache has.
const WRITE_CACHE_SHARE: u64 = 64;
/// Memory of a cache by simulated key, and its bounds.
const MEMORY_PER_KEY: u64 = 26;
const MEMORY: std::ops::RangeInclusive<u64> = 8 << 20..=4 << 30;
/// Parts of a cache of at least this memory, so that threads rarely wait for each other. A smaller one has one part, so
/// that its largest items fit.
const PARTITIONS: usize = 4;
const PARTITIONED_BYTES_MIN: u64 = 64 << 20;
/// Bytes of values that are requested at a point, and bounds of the number of requests.
const REQUESTED_BYTES: usize = 100 << 20;
const REQUESTS: std::ops::RangeInclusive<usize> = 10_000..=1_000_000;

/// Turns of each point, the fastest of which counts.
const TURNS: usize = 2;

/// A cache of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Plain,
    Surviving,
    WriteCache,
    EverySet,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Plain, Self::Surviving, Self::WriteCache, Self::EverySet];

    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "in memory",
            Self::Surviving => "surviving",
            Self::WriteCache => "with a write cache",
            Self::EverySet => "each set flushed",
        }
    }
}

/// The directory of a figure's files, in memory where the system has such a place.
pub struct Files {
    directory: Option<WorkDirectory>,
}

impl Files {
    pub fn new(scale: &Scale, figure: &str) -> Result<Self, BenchError> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory } else { &scale.directory };
        let name = format!("alluvium-{figure}-{}", std::process::id());
        Ok(Self { directory: Some(scale.directories.create(parent, &name)?) })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.as_ref().map_or_else(PathBuf::new, |directory| directory.path().join(name))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What is left is removed when the next figure of this name is drawn.
        let _ = self.directory.take().map(WorkDirectory::remove);
    }
}

/// Caches with items of one size.
pub struct Caches<'a> {
    files: &'a Files,
    pub values: Values,
    pub keys: u32,
    memory: u64,
}

impl<'a> Caches<'a> {
    /// With as many items of this size as there is room for.
    pub fn new(scale: &Scale, files: &'a Files, value_bytes: usize) -> Self {
        let memory = (scale.simulated_keys_max * MEMORY_PER_KEY).clamp(*MEMORY.start(), *MEMORY.end());
        let values = Values::Numbered(value_bytes);
        let keys = memory as usize / (values.payload_bytes_mean() + OVERHEAD_BYTES);
        Self { files, keys: keys.clamp(1, 1 << 30) as u32, values, memory }
    }

    /// As many requests as are meant for a point.
    pub fn requests_len(&self) -> usize {
        let bytes = REQUESTED_BYTES.min(self.memory as usize);
        (bytes / self.values.payload_bytes_mean()).clamp(*REQUESTS.start(), *REQUESTS.end())
    }

    fn builder(&self) -> Builder {
        let partitions = if self.memory < PARTITIONED_BYTES_MIN { 1 } else { PARTITIONS };
        let builder = Cache::builder().memory_limit(self.memory as usize).partitions(partitions);
        builder.payload_bytes_mean(self.values.payload_bytes_mean())
    }

    /// Million requests a second of a new cache that has all items, for each series of requests and its number of
    /// threads.
    pub fn rates(&self, kind: Kind, series: &[(&[Request], usize)]) -> Result<Vec<f64>, BenchError> {
        if kind == Kind::Plain {
            let cache = self.builder().build().map_err(refused)?;
            return self.rates_of(&cache, series);
        }
        let path = self.files.path("cache");
        let write_cache = if kind == Kind::WriteCache { self.memory / WRITE_CACHE_SHARE } else { 0 };
        let builder = self.builder().survive(&path, Survive::Pmem).write_cache_bytes(write_cache as usize);
        let cache = open(builder.reset(true).flushes_each_set(kind == Kind::EverySet))?;
        let rates = self.rates_of(&cache, series);
        drop(cache);
        std::fs::remove_file(path)?;
        rates
    }

    fn rates_of<S: super::replay::Subject + Copy + Send + Sync>(
        &self,
        cache: S,
        series: &[(&[Request], usize)],
    ) -> Result<Vec<f64>, BenchError> {
        load(cache, &self.values, self.keys)?;
        let rate = |&(requests, threads): &(&[Request], usize)| {
            let mut best = 0.0_f64;
            for _ in 0..TURNS {
                let tally = replay_together(cache, &self.values, requests, AfterMiss::Nothing, threads)?;
                best = best.max(millions_per_s(&tally));
            }
            Ok(best)
        };
        series.iter().map(rate).collect()
    }
}

/// Opens a cache in a file.
pub fn open(builder: SurvivingBuilder) -> Result<SurvivingCache, BenchError> {
    builder.open().map_err(|error| BenchError::Usage(error.to_string()))
}
