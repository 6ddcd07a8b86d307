//! Any plan, from a file or by name, under any workload.

use std::path::PathBuf;
use std::{fs, io};

use alluvium_bench::{BenchError, Measurement};
use alluvium_model::models::Wear;
use alluvium_model::plan_model::{
    GetPopularity, ItemSize, PlanCost, PlanModel, Rules, Workload, young_writes,
};
use alluvium_model::{KeyDistribution, Plan};

use super::keys::KeyOptions;
use super::output::{WearOptions, add_cost, measurement};
use super::unreadable;

/// Options of `plan`.
#[derive(Clone, Debug, clap::Args)]
pub struct PlanOptions {
    /// File with the plan as JSON, as `alluvium inspect --json` shows it
    #[arg(long, required_unless_present_any = ["name", "print"])]
    file: Option<PathBuf>,
    /// A named plan instead: silt, lsm-trie, slimdb, slimdb-tiering, semi-sorted, leveled, skimpystash
    #[arg(long, conflicts_with = "file")]
    name: Option<String>,
    /// Print the named plan as JSON, to be changed and given as --file
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "name"])]
    print: Option<String>,
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    workload: WorkloadOptions,
    #[command(flatten)]
    rules: RuleOptions,
    /// Maximum bytes of memory for finding items; what does not fit stays on the device
    #[arg(long)]
    memory_limit: Option<f64>,
    #[command(flatten)]
    wear: WearOptions,
    /// Number of levels whose tables are on a second device; the wear options apply to each device
    #[arg(long, value_name = "N")]
    young_levels: Option<usize>,
}

#[derive(Clone, Debug, clap::Args)]
struct WorkloadOptions {
    /// Load an empty store: --start-keys 0 --fresh-share 1 --expected-keys KEYS --gets uniform
    #[arg(long, conflicts_with_all = ["start_keys", "fresh_share", "expected_keys", "delete_share", "gets"])]
    load: bool,
    /// Keys at the start; if fewer than --keys, the store grows [default: as many as --keys]
    #[arg(long)]
    start_keys: Option<f64>,
    /// Number of keys that the store is configured to expect
    #[arg(long, default_value_t = 0.0)]
    expected_keys: f64,
    /// Share of the writes that add new keys
    #[arg(long, default_value_t = 0.0)]
    fresh_share: f64,
    /// Share of the other writes that delete
    #[arg(long, default_value_t = 0.0)]
    delete_share: f64,
    /// Mean bytes of a key
    #[arg(long, default_value_t = 16.0)]
    key_bytes: f64,
    /// Mean bytes of a value
    #[arg(long, default_value_t = 100.0)]
    value_bytes: f64,
    /// Standard deviation of an item's bytes
    #[arg(long, default_value_t = 0.0)]
    deviation_bytes: f64,
    /// Which of the present keys are read
    #[arg(long, value_enum, default_value = "like-puts")]
    gets: Gets,
    /// Items in a cache in front of the store
    #[arg(long, default_value_t = 0.0)]
    cached_items: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
enum Gets {
    /// All keys equally often
    Uniform,
    /// Each as often as it is put
    LikePuts,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RuleSet {
    /// This engine, with merges that keep up
    Engine,
    /// This engine, with writers as fast as it allows
    FullSpeed,
    /// The papers: no overhead at all
    Papers,
}

#[derive(Clone, Debug, clap::Args)]
struct RuleOptions {
    /// Overhead of storage besides the items
    #[arg(long, value_enum, default_value = "engine")]
    rules: RuleSet,
    /// Bytes of a page
    #[arg(long)]
    page_bytes: Option<f64>,
    /// Let items span two adjacent pages
    #[arg(long)]
    straddle: bool,
    /// Garbage share at which last-level runs are rewritten
    #[arg(long)]
    garbage_share: Option<f64>,
    /// Count false overlaps in leveling, as LevelDB has them
    #[arg(long)]
    false_overlaps: bool,
}

impl RuleOptions {
    fn rules(&self) -> Rules {
        let set = match self.rules {
            RuleSet::Engine => Rules::engine(),
            RuleSet::FullSpeed => Rules::engine_at_full_speed(),
            RuleSet::Papers => Rules::papers(),
        };
        Rules {
            page_bytes: self.page_bytes.unwrap_or(set.page_bytes),
            straddle: self.straddle || set.straddle,
            garbage_share: self.garbage_share.unwrap_or(set.garbage_share),
            false_overlaps: self.false_overlaps || set.false_overlaps,
            ..set
        }
    }
}

impl WorkloadOptions {
    fn workload(&self, keys: KeyDistribution) -> Workload {
        let all = keys.keys();
        let (start_keys, expected_keys, fresh_share) = if self.load {
            (0.0, all, 1.0)
        } else {
            (self.start_keys.unwrap_or(all), self.expected_keys, self.fresh_share)
        };
        let gets = if self.load || self.gets == Gets::Uniform {
            GetPopularity::Uniform
        } else {
            GetPopularity::LikePuts
        };
        Workload {
            keys,
            start_keys,
            expected_keys,
            fresh_share,
            delete_share: self.delete_share,
            item: ItemSize {
                key_bytes: self.key_bytes,
                value_bytes: self.value_bytes,
                deviation_bytes: self.deviation_bytes,
            },
            gets,
            cached_items: self.cached_items,
        }
    }
}

impl PlanOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        if let Some(name) = &self.print {
            let plan = serde_json::to_string_pretty(&named(name)?).map_err(io::Error::from)?;
            println!("{plan}");
            return Ok(Vec::new());
        }
        let plan = self.plan()?;
        let keys = self.keys.distribution()?;
        let workload = self.workload.workload(keys);
        let wear = self.wear.wear(workload.item.bytes());
        wear.validate()?;
        let model = PlanModel {
            plan,
            rules: self.rules.rules(),
            memory_limit_bytes: self.memory_limit.unwrap_or(f64::INFINITY),
            workload,
        };
        let cost = model.cost()?;
        let live = model.workload.live_keys();
        let measurement = self.configured(&model);
        let measurement = add_cost(measurement, &cost.cost, live, &wear);
        let measurement = match self.young_levels {
            Some(levels) => add_devices(measurement, &cost, levels, &wear),
            None => measurement,
        };
        Ok(vec![add_levels(measurement, &cost)])
    }

    fn plan(&self) -> Result<Plan, BenchError> {
        let Some(path) = &self.file else { return named(self.name.as_deref().unwrap_or_default()) };
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
        Plan::from_json(&text).map_err(|error| BenchError::Usage(format!("{}: {error}", path.display())))
    }

    fn configured(&self, model: &PlanModel) -> Measurement {
        let plan = match (&self.file, &self.name) {
            (Some(path), _) => path.display().to_string(),
            (None, name) => name.clone().unwrap_or_default(),
        };
        let workload = &model.workload;
        self.keys
            .configure(measurement("plan").config("plan", plan), workload.keys.keys())
            .config("start_keys", workload.start_keys)
            .config("expected_keys", workload.expected_keys)
            .config("fresh_share", workload.fresh_share)
            .config("delete_share", workload.delete_share)
            .config("key_bytes", workload.item.key_bytes)
            .config("value_bytes", workload.item.value_bytes)
            .config("deviation_bytes", workload.item.deviation_bytes)
            .config("memory_limit_bytes", model.memory_limit_bytes)
    }
}

/// Adds each device's share of the writes, and its lifetime.
fn add_devices(measurement: Measurement, cost: &PlanCost, levels: usize, wear: &Wear) -> Measurement {
    let young = young_writes(&cost.cost.writes, levels);
    let own = cost.cost.write_amplification() - young;
    measurement
        .metric("young_device_write_amplification", young)
        .metric("young_device_lifetime_years", wear.lifetime_years(young))
        .metric("own_device_write_amplification", own)
        .metric("own_device_lifetime_years", wear.lifetime_years(own))
}

fn add_levels(measurement: Measurement, cost: &PlanCost) -> Measurement {
    let measurement = measurement
        .metric("bytes_per_item_second_half", cost.bytes_per_item_second_half)
        .metric("write_buffer_bytes", cost.write_buffer_bytes);
    cost.levels.iter().enumerate().fold(measurement, |measurement, (number, level)| {
        measurement
            .metric(&format!("level_{number}_records"), level.records)
            .metric(&format!("level_{number}_runs"), level.runs)
            .metric(&format!("level_{number}_interval_writes"), level.interval_writes)
    })
}

fn named(name: &str) -> Result<Plan, BenchError> {
    Plan::named(name).map_err(|error| BenchError::Usage(error.to_string()))
}
