//! The options of `bench store`.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use alluvium::{Durability, ReadWait};
use alluvium_base::units;
use alluvium_model::Plan;
use serde_json::{Map, Value};

use super::SUBDIRECTORY;
use super::phase::Phase;
use super::workload::KEY_BYTES_MIN;
use crate::error::BenchError;
use crate::latencies::Latencies;
use crate::work_directory::default_parent;

/// Options of `bench store`.
#[derive(Clone, Debug, clap::Args)]
pub struct StoreOptions {
    /// Storage layout: the name of a plan, or a JSON file with a plan
    #[arg(long, default_value = "silt")]
    pub plan: String,
    /// Items to load
    #[arg(long, default_value_t = 1_000_000)]
    pub items: u64,
    /// Number of items that the database is told to expect. By default it is told none, as in most programs, except
    /// under a chained plan, whose directory is made for a number of items
    #[arg(long, default_value_t = 0)]
    pub expected_items: u64,
    /// Bytes of a key, at least 8
    #[arg(long, default_value_t = 16)]
    pub key_size: usize,
    /// Bytes of a value
    #[arg(long, default_value_t = 100)]
    pub value_size: usize,
    /// What to do, in order: load, ingest, settle, flush, compact, get, stream, all, miss, update, mixed, scan,
    /// sustain, reopen, expire, delete, snapshot, degrade, replan=PLAN
    #[arg(long, value_delimiter = ',', default_value = "load,get,miss,update,mixed,scan")]
    pub phases: Vec<Phase>,
    /// Threads of get, miss and mixed
    #[arg(long, default_value_t = 8)]
    pub threads: usize,
    /// Threads of load, update and sustain
    #[arg(long, default_value_t = 1)]
    pub writers: usize,
    /// Keys per call of get and miss; if above 1, multi_get is used
    #[arg(long, default_value_t = 1)]
    pub batch: usize,
    /// Operations of get, miss and mixed; by default the number of items, but at most 1,000,000
    #[arg(long)]
    pub operations: Option<u64>,
    /// Share of gets in mixed
    #[arg(long, default_value_t = 0.95)]
    pub get_ratio: f64,
    /// Seconds of sustain
    #[arg(long, default_value_t = 60.0)]
    pub sustain_seconds: f64,
    /// When a put is safe: buffered, process, sync, or an interval such as 1ms
    #[arg(long, default_value = "buffered")]
    pub durability: String,
    /// Seed of keys, values and choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Memory limit of the whole process, such as 64MiB; unlimited by default
    #[arg(long, value_parser = units::parse_bytes)]
    pub memory: Option<u64>,
    /// Maximum size of the row cache, such as 64MiB; by default as in any database
    #[arg(long, value_parser = units::parse_bytes)]
    pub row_cache: Option<u64>,
    /// Directory for the database, which gets a subdirectory `alluvium-bench-store`. The default is Cargo's
    /// `target` if the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    pub dir: PathBuf,
    /// Directory for tables of young levels, possibly on another device; it gets a subdirectory of the same name.
    /// Device statistics are those of --dir's device
    #[arg(long)]
    pub young_dir: Option<PathBuf>,
    /// Number of levels whose tables are stored in --young-dir
    #[arg(long, default_value_t = 1, requires = "young_dir")]
    pub young_levels: usize,
    /// What threads do while they wait for reads; only the phase get measures all ways, the other phases then adapt
    #[arg(long, value_enum, default_value = "all")]
    pub read_wait: Waits,
    /// Keep the database at the end; later runs without load can use it if this run did not overwrite items
    #[arg(long)]
    pub keep: bool,
    /// Seconds for measuring the raw device by each method of reading, in turns with get; 0 to skip this
    #[arg(long, default_value_t = 5.0)]
    pub raw_seconds: f64,
}

/// What threads do while they wait for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Waits {
    /// They poll for some of their reads and sleep during the others.
    Adapt,
    /// They sleep.
    Sleep,
    /// They poll, which occupies a processor for each.
    Poll,
    /// All of these, in turns.
    All,
}

impl Waits {
    /// All ways to wait; the first is that of the phases that use only one.
    pub(super) fn all(self) -> &'static [ReadWait] {
        match self {
            Self::Adapt => &[ReadWait::Adapt],
            Self::Sleep => &[ReadWait::Sleep],
            Self::Poll => &[ReadWait::Poll],
            Self::All => &[ReadWait::Adapt, ReadWait::Sleep, ReadWait::Poll],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Adapt => "adapt",
            Self::Sleep => "sleep",
            Self::Poll => "poll",
            Self::All => "all",
        }
    }
}

impl StoreOptions {
    /// The second directory of the database.
    pub(super) fn young_directory(&self) -> Option<PathBuf> {
        self.young_dir.as_ref().map(|directory| directory.join(SUBDIRECTORY))
    }

    /// Bytes of memory that the latencies of all threads, and their sums, take.
    pub fn latencies_bytes(&self) -> u64 {
        let threads = self.threads.max(self.writers) as u64 + 1;
        threads * 2 * Latencies::default().memory_bytes()
    }

    /// Refuses contradictory or senseless options, with the reason.
    pub fn validate(&self) -> Result<(), BenchError> {
        let refuse = |reason: &str| Err(BenchError::Usage(reason.to_owned()));
        if self.items == 0 || self.items >= 1 << 40 {
            return refuse("--items must be at least 1 and below 2^40");
        }
        if self.key_size < KEY_BYTES_MIN {
            return refuse("--key-size must be at least 8: a key contains the item's permuted number");
        }
        if self.threads == 0 || self.writers == 0 || self.batch == 0 {
            return refuse("--threads, --writers and --batch must be at least 1");
        }
        if self.writers as u64 > self.items || self.threads as u64 > self.items {
            return refuse("more threads than items");
        }
        if !(0.0..=1.0).contains(&self.get_ratio) {
            return refuse("--get-ratio must be between 0 and 1");
        }
        if !(self.sustain_seconds > 0.0 && self.sustain_seconds < 1e6) {
            return refuse("--sustain-seconds must be between 0 and a million");
        }
        if !(0.0..1e6).contains(&self.raw_seconds) {
            return refuse("--raw-seconds must be between 0 and a million");
        }
        self.plan()?;
        self.durability().map(drop)
    }

    /// The plan with this name, or in this file.
    pub(super) fn plan(&self) -> Result<Plan, BenchError> {
        let usage = |reason: &dyn Display| BenchError::Usage(format!("--plan {}: {reason}", self.plan));
        Plan::named(&self.plan).or_else(|unknown| match fs::read_to_string(&self.plan) {
            Ok(json) => Plan::from_json(&json).map_err(|error| usage(&error)),
            Err(_) => Err(usage(&unknown)),
        })
    }

    /// Number of items that the database is told to expect; 0 for none.
    pub(super) fn expected_items(&self) -> Result<u64, BenchError> {
        Ok(match self.plan()? {
            Plan::Chained(_) if self.expected_items == 0 => self.items,
            _ => self.expected_items,
        })
    }

    /// The durability by name.
    pub fn durability(&self) -> Result<Durability, BenchError> {
        match self.durability.as_str() {
            "buffered" => Ok(Durability::Buffered),
            "process" => Ok(Durability::Process),
            "sync" => Ok(Durability::Sync),
            text => match units::parse_duration(text) {
                Ok(interval) if interval > Duration::ZERO => Ok(Durability::Interval(interval)),
                _ => Err(BenchError::Usage(format!(
                    "--durability {text:?}: expected buffered, process, sync or 1ms"
                ))),
            },
        }
    }

    /// Operations of the reading phases.
    pub fn operations(&self) -> u64 {
        self.operations.unwrap_or(self.items.min(1_000_000))
    }

    /// The content of each measurement's `config`.
    pub fn describe(&self) -> Map<String, Value> {
        let mut config = Map::new();
        let mut add = |name: &str, value: Value| config.insert(name.to_owned(), value);
        add("plan", self.plan.clone().into());
        add("items", self.items.into());
        add("key_bytes", self.key_size.into());
        add("value_bytes", self.value_size.into());
        add("threads", self.threads.into());
        add("writers", self.writers.into());
        add("batch", self.batch.into());
        add("durability", self.durability.clone().into());
        add("read_wait", self.read_wait.name().into());
        add("seed", self.seed.into());
        add("memory_limit_bytes", self.memory.into());
        if self.young_dir.is_some() {
            add("young_levels", self.young_levels.into());
        }
        config
    }
}
