//! Designs executed by key numbers, each compared with its model.

use alluvium_bench::{BenchError, Measurement};
use alluvium_model::plan_model::{ItemSize, PlanModel, Rules, Workload};
use alluvium_model::{Plan, RequestStream};
use alluvium_papers::models::{Cola, LevelDb, Samt};
use alluvium_papers::simulator::{
    EngineSimulation, LevelDbSimulation, SimulatedCost, StageRule, StagesSimulation,
};
use clap::Subcommand;

use super::keys::KeyOptions;
use super::output::{add_components, measurement};

/// Options of `simulate`. Every key is put once before counting starts.
#[derive(Clone, Debug, clap::Args)]
pub struct SimulateOptions {
    #[command(subcommand)]
    design: Design,
    /// Seed of keys and requests
    #[arg(long, default_value_t = 1, global = true)]
    seed: u64,
}

#[derive(Clone, Debug, Subcommand)]
enum Design {
    /// LevelDB's tables and levels. Counts 3 requests per key
    Leveldb(LevelDbRules),
    /// One table per level, into which new data is merged
    Cola(StageRules),
    /// Several tables per level, merged together
    Samt(StageRules),
    /// This engine with the plan `silt`. Counts 3 updates per key
    Engine(EngineRules),
}

#[derive(Clone, Debug, clap::Args)]
struct LevelDbRules {
    #[command(flatten)]
    keys: KeyOptions,
    /// Requests of one write-ahead log
    #[arg(long, default_value_t = 4194)]
    wal: u64,
    /// Tables of level 0 that start its compaction
    #[arg(long, default_value_t = 4)]
    level0_tables: usize,
    /// Sizes of levels 1 and up, except the last
    #[arg(long, value_delimiter = ',', default_value = "10486,104858,1048576,10485760")]
    sizes: Vec<u64>,
    /// Items of a table
    #[arg(long, default_value_t = 2097)]
    table_items: usize,
}

#[derive(Clone, Debug, clap::Args)]
struct StageRules {
    #[command(flatten)]
    keys: KeyOptions,
    /// Requests of one write-ahead log
    #[arg(long, default_value_t = 4194)]
    wal: u64,
    /// Number of levels; the last one has all keys
    #[arg(long, default_value_t = 3)]
    levels: u32,
    /// Growth factor
    #[arg(long, default_value_t = 4)]
    growth: u32,
}

#[derive(Clone, Debug, clap::Args)]
struct EngineRules {
    #[command(flatten)]
    keys: KeyOptions,
    /// Share of the updates that delete
    #[arg(long, default_value_t = 0.0)]
    delete_share: f64,
}

/// Default number of keys of a simulation.
const KEYS: f64 = 1e6;

impl SimulateOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        match &self.design {
            Design::Leveldb(rules) => rules.run(self.seed),
            Design::Cola(rules) => rules.run(StageRule::Merge, self.seed),
            Design::Samt(rules) => rules.run(StageRule::Collect, self.seed),
            Design::Engine(rules) => rules.run(self.seed),
        }
    }
}

/// Requests as the options describe them, by key numbers.
fn stream(keys: &mut KeyOptions, seed: u64) -> Result<RequestStream, BenchError> {
    if keys.histogram.is_some() {
        return Err(BenchError::Usage("a simulation draws Zipf popularity: give --skew".to_owned()));
    }
    let count = *keys.keys.get_or_insert(KEYS);
    Ok(RequestStream::new(count as u64, keys.skew, seed)?)
}

fn report(name: &str, keys: &KeyOptions, simulated: &SimulatedCost, predicted: f64) -> Measurement {
    let measurement = keys.configure(measurement(name), keys.keys_or(KEYS));
    let measurement = measurement
        .metric("write_amplification", simulated.write_amplification())
        .metric("predicted", predicted)
        .metric("records_per_key", simulated.records_per_key)
        .metric("runs", simulated.runs);
    add_components(measurement, "write_amplification", &simulated.writes)
}

impl LevelDbRules {
    fn run(&self, seed: u64) -> Result<Vec<Measurement>, BenchError> {
        let mut keys = self.keys.clone();
        let mut requests = stream(&mut keys, seed)?;
        let count = requests.keys();
        // A size that covers all keys is that of the last level, which is unbounded.
        let sizes: Vec<u64> = self.sizes.iter().copied().take_while(|&size| size < count).collect();
        let design = LevelDb {
            wal: self.wal as f64,
            level0_tables: self.level0_tables as f64,
            sizes: sizes.iter().map(|&size| size as f64).collect(),
            ..LevelDb::default()
        };
        let predicted = design.cost(&keys.distribution()?)?.write_amplification();
        let rules = LevelDbSimulation {
            wal: self.wal,
            level0_tables: self.level0_tables,
            sizes,
            table_items: self.table_items,
            overlapped_tables: 10,
        };
        let simulated = rules.run(&mut requests, 3 * count)?;
        Ok(vec![report("simulate-leveldb", &keys, &simulated, predicted)])
    }
}

impl StageRules {
    fn run(&self, rule: StageRule, seed: u64) -> Result<Vec<Measurement>, BenchError> {
        let mut keys = self.keys.clone();
        let mut requests = stream(&mut keys, seed)?;
        let (wal, levels, growth) = (self.wal as f64, self.levels, self.growth);
        let distribution = keys.distribution()?;
        let (name, cost) = match rule {
            StageRule::Merge => {
                ("simulate-cola", Cola { wal, levels, growth, index_bytes: 0.0 }.cost(&distribution)?)
            }
            StageRule::Collect => {
                ("simulate-samt", Samt { wal, levels, growth, index_bytes: 0.0 }.cost(&distribution)?)
            }
        };
        let rules = StagesSimulation { rule, wal: self.wal, levels, growth };
        let simulated = rules.run(&mut requests, 3)?;
        Ok(vec![report(name, &keys, &simulated, cost.write_amplification())])
    }
}

impl EngineRules {
    fn run(&self, seed: u64) -> Result<Vec<Measurement>, BenchError> {
        let mut keys = self.keys.clone();
        let mut requests = stream(&mut keys, seed)?;
        let count = requests.keys();
        // Records of one size, including tombstones, and no overheads: the simulation counts records.
        let item = ItemSize { key_bytes: 1.0, value_bytes: 0.0, deviation_bytes: 0.0 };
        let predicted = |workload| -> Result<f64, BenchError> {
            let model = PlanModel { rules: Rules::papers(), ..PlanModel::new(Plan::silt(), workload) };
            Ok(model.cost()?.cost.write_amplification())
        };
        let load = predicted(Workload::load(count as f64, item)?)?;
        let updates = Workload::updates(keys.distribution()?, item);
        let updates = predicted(Workload { delete_share: self.delete_share, ..updates })?;
        let mut engine = EngineSimulation::new(&Plan::silt(), count, count, u64::MAX)?;
        let loaded = engine.load(&requests);
        engine.update(&mut requests, count, self.delete_share);
        let updated = engine.update(&mut requests, 3 * count, self.delete_share);
        Ok(vec![
            report("simulate-engine-load", &keys, &loaded, load),
            report("simulate-engine-update", &keys, &updated, updates),
        ])
    }
}
