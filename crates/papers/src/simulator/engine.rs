//! The engine's log and levels: shards, freezes, and the merges that follow ([`LevelsSimulation`]).

use alluvium_model::models::Component;
use alluvium_model::{LevelsPlan, ModelError, Plan, PlanError, RequestStream, Sharding, within};

use super::{LevelsSimulation, SimulatedCost, TableBytes};

/// A store under a plan, executed by key numbers.
#[derive(Debug)]
pub struct EngineSimulation {
    plan: Plan,
    sharding: Sharding,
    /// Number of keys that the store was told to expect.
    expected_keys: u64,
    /// Maximum number of records of a log segment.
    segment_records_max: u64,
    keys: u64,
    log: Log,
    levels: LevelsSimulation,
    counts: Counts,
}

/// The log: which keys it holds, by shard.
#[derive(Debug)]
struct Log {
    shard_bits: u32,
    entries_max: usize,
    shards: Vec<Vec<u32>>,
    records: u64,
    /// For each key, the number of the log that wrote it last, and whether that write deleted it.
    newest: Vec<u32>,
    deleted: Vec<bool>,
    number: u32,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    writes: u64,
    /// What the levels had written when the counting began.
    written_before: Vec<u64>,
    samples: f64,
    records: f64,
    runs: f64,
}

impl EngineSimulation {
    /// An empty store of up to `keys` keys. `expected_keys` is the number of keys that it is told to expect,
    /// `segment_records_max` the number of records that the plan's log segment holds.
    ///
    /// # Errors
    /// A plan that the engine refuses.
    pub fn new(
        plan: &Plan,
        keys: u64,
        expected_keys: u64,
        segment_records_max: u64,
    ) -> Result<Self, ModelError> {
        within("keys", keys as f64, 1.0, 4_294_967_296.0)?;
        let levels = LevelsSimulation::new(plan, expected_keys, TableBytes::default())?;
        let Plan::Levels(LevelsPlan { sharding, .. }) = plan else {
            return Err(ModelError::IllegalPlan(PlanError("a chained plan has no levels".to_owned())));
        };
        let log = Log {
            shard_bits: 0,
            entries_max: 0,
            shards: Vec::new(),
            records: 0,
            newest: vec![0; keys as usize],
            deleted: vec![false; keys as usize],
            number: 0,
        };
        let mut simulation = Self {
            plan: plan.clone(),
            sharding: *sharding,
            expected_keys,
            segment_records_max,
            keys,
            log,
            levels,
            counts: Counts::default(),
        };
        simulation.begin_log();
        Ok(simulation)
    }

    /// Puts all keys of `stream` once, in random order.
    pub fn load(&mut self, stream: &RequestStream) -> SimulatedCost {
        self.begin_counting();
        (0..stream.keys()).for_each(|rank| self.write(stream.key_of_rank(rank), false));
        self.cost()
    }

    /// Writes `requests` times; a share of `delete_share` of the writes delete.
    pub fn update(&mut self, stream: &mut RequestStream, requests: u64, delete_share: f64) -> SimulatedCost {
        self.begin_counting();
        for _ in 0..requests {
            let key = stream.next_key();
            let is_delete = delete_share > 0.0 && stream.next_chance() < delete_share;
            self.write(key, is_delete);
        }
        self.cost()
    }

    /// Keys in the last level.
    pub fn last_level_keys(&self) -> u64 {
        self.levels.level_records(self.levels.written().len() - 1)
    }

    fn begin_counting(&mut self) {
        let written_before = self.levels.written().to_vec();
        self.counts = Counts { written_before, ..Counts::default() };
    }

    fn write(&mut self, key: u32, is_delete: bool) {
        let shard = (u64::from(self.position(key)) >> (32 - self.log.shard_bits)) as usize;
        let is_new = self.log.newest[key as usize] != self.log.number;
        let is_full = is_new && self.log.shards[shard].len() >= self.log.entries_max;
        if is_full || self.log.records >= self.segment_records_max {
            self.freeze();
            return self.write(key, is_delete);
        }
        if is_new {
            self.log.newest[key as usize] = self.log.number;
            self.log.shards[shard].push(key);
        }
        self.log.deleted[key as usize] = is_delete;
        self.log.records += 1;
        self.counts.writes += 1;
    }

    /// The position of a key: keys are evenly distributed over all positions.
    fn position(&self, key: u32) -> u32 {
        ((u64::from(key) << 32) / self.keys) as u32
    }

    fn begin_log(&mut self) {
        let items = self.plan.items_sharded(self.levels.records(), self.expected_keys);
        let shards = self.sharding.shards(items);
        self.log.shard_bits = shards.ilog2();
        self.log.entries_max = self.sharding.log_entries(items) as usize;
        self.log.shards = vec![Vec::new(); shards as usize];
        self.log.records = 0;
        self.log.number += 1;
    }

    fn freeze(&mut self) {
        let keys = std::mem::take(&mut self.log.shards).into_iter().flatten();
        let records = keys.map(|key| (self.position(key), self.log.deleted[key as usize])).collect();
        self.levels.freeze(records, self.log.shard_bits);
        self.begin_log();
        let by_index = (self.log.entries_max as u64) << self.log.shard_bits;
        let freeze_items = by_index.min(self.segment_records_max.max(1)) as f64;
        let units = f64::from(1 << self.log.shard_bits);
        while self.levels.merge_next(freeze_items, units).is_some() {}
        self.counts.samples += 1.0;
        self.counts.records += self.levels.records() as f64;
        self.counts.runs += self.levels.run_records() as f64;
    }

    fn cost(&self) -> SimulatedCost {
        let Counts { writes, written_before, samples, records, runs } = &self.counts;
        let written = self.levels.written().iter().zip(written_before).map(|(now, before)| now - before);
        let mut components = vec![Component::new("log", 1.0)];
        components.extend(written.enumerate().map(|(number, written)| {
            Component::new(format!("level {number}"), written as f64 / *writes as f64)
        }));
        let writes_a_freeze = *writes as f64 / samples.max(1.0);
        let freeze_items = writes_a_freeze.min(components[1].amount * writes_a_freeze);
        SimulatedCost {
            writes: components,
            records_per_key: records / samples / self.keys as f64,
            runs: runs / samples / freeze_items.max(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_model::KeyDistribution;
    use alluvium_model::plan_model::{ItemSize, PlanModel, Rules, Workload};

    const ITEM: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 100.0, deviation_bytes: 0.0 };
    const UNLIMITED: u64 = 1 << 40;

    fn model(workload: Workload) -> f64 {
        let model = PlanModel { rules: Rules::papers(), ..PlanModel::new(Plan::silt(), workload) };
        model.cost().unwrap().cost.write_amplification()
    }

    fn assert_agrees(simulated: &SimulatedCost, model: f64, tolerance: f64, what: &str) {
        let ratio = model / simulated.write_amplification();
        assert!((ratio - 1.0).abs() < tolerance, "{what}: {model} instead of {simulated:?}");
    }

    #[test]
    fn the_plan_model_agrees_while_loading_and_updating() {
        let keys = 2_000_000;
        for skew in [0.0, 0.99] {
            let mut requests = RequestStream::new(keys, skew, 2).unwrap();
            let mut engine = EngineSimulation::new(&Plan::silt(), keys, keys, UNLIMITED).unwrap();
            let loaded = engine.load(&requests);
            assert_agrees(&loaded, model(Workload::load(keys as f64, ITEM).unwrap()), 0.05, "load");
            engine.update(&mut requests, keys, 0.0);
            let updated = engine.update(&mut requests, 3 * keys, 0.0);
            let distribution = KeyDistribution::zipf(keys as f64, skew).unwrap();
            assert_agrees(&updated, model(Workload::updates(distribution, ITEM)), 0.05, "update");
        }
    }

    #[test]
    fn the_plan_model_agrees_when_nothing_was_expected() {
        let keys = 1_000_000;
        let requests = RequestStream::new(keys, 0.0, 2).unwrap();
        let mut engine = EngineSimulation::new(&Plan::silt(), keys, 0, UNLIMITED).unwrap();
        let loaded = engine.load(&requests);
        let workload = Workload { expected_keys: 0.0, ..Workload::load(keys as f64, ITEM).unwrap() };
        assert_agrees(&loaded, model(workload), 0.05, "load");
    }

    #[test]
    fn the_plan_model_agrees_with_deletes() {
        let keys = 1_000_000;
        let mut requests = RequestStream::new(keys, 0.0, 2).unwrap();
        let mut engine = EngineSimulation::new(&Plan::silt(), keys, 0, UNLIMITED).unwrap();
        engine.load(&requests);
        engine.update(&mut requests, 2 * keys, 0.3);
        let updated = engine.update(&mut requests, 3 * keys, 0.3);
        assert!((engine.last_level_keys() as f64 / (0.7 * keys as f64) - 1.0).abs() < 0.03);
        let distribution = KeyDistribution::uniform(keys as f64).unwrap();
        // All records count the same in the simulation, so a tombstone must be as large as an item.
        let item = ItemSize { key_bytes: 116.0, value_bytes: 0.0, deviation_bytes: 0.0 };
        let workload = Workload { delete_share: 0.3, ..Workload::updates(distribution, item) };
        assert_agrees(&updated, model(workload), 0.05, "deletes");
    }

    #[test]
    fn plans_without_young_runs_are_refused() {
        let LevelsPlan { sharding, log, levels } = LevelsPlan::silt();
        let plan = Plan::Levels(LevelsPlan { sharding, log, levels: levels[1..].to_vec() });
        assert!(EngineSimulation::new(&plan, 10, 0, UNLIMITED).is_err());
        assert!(EngineSimulation::new(&Plan::skimpystash(), 10, 0, UNLIMITED).is_err());
    }
}
