//! The engine's rules for a tiering level of filtered runs over one sorted run: shards, freezes, and merging of the
//! fullest unit (docs/decisions/0004-the-fullest-unit-merges.md).

use alluvium_model::models::Component;
use alluvium_model::policy::{self, Shape, YoungestBounds};
use alluvium_model::{
    GARBAGE_SHARE_MAX, Growth, LevelSpec, ModelError, Plan, PlanError, RequestStream, Sharding, within,
};

use super::SimulatedCost;

/// A plan of the same form as `silt`, executed by key numbers.
#[derive(Debug)]
pub struct EngineSimulation {
    sharding: Sharding,
    runs_max: u32,
    share: f64,
    /// Number of keys that the store was told to expect.
    expected_keys: u64,
    /// Maximum number of records of a log segment.
    segment_records_max: u64,
    keys: u64,
    log: Log,
    runs: Vec<Run>,
    /// Keys in the sorted run.
    sorted: Vec<bool>,
    sorted_count: u64,
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

/// Keys and whether they are deleted, by shard; merged shards are `None`.
#[derive(Debug)]
struct Run {
    shard_bits: u32,
    sections: Vec<Option<Vec<(u32, bool)>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    writes: u64,
    hashed: u64,
    sorted: u64,
    samples: f64,
    records: f64,
    runs: f64,
}

/// A part of the key space that is merged together.
#[derive(Clone, Copy, Debug)]
struct Unit {
    bits: u32,
    index: u64,
    items: u64,
    runs: u32,
}

impl EngineSimulation {
    /// An empty store of up to `keys` keys. `expected_keys` is the number of keys that it is told to expect,
    /// `segment_records_max` the number of records that the plan's log segment holds.
    pub fn new(
        plan: &Plan,
        keys: u64,
        expected_keys: u64,
        segment_records_max: u64,
    ) -> Result<Self, ModelError> {
        plan.validate()?;
        within("keys", keys as f64, 1.0, 4_294_967_296.0)?;
        let Plan::Levels { sharding, levels, .. } = plan else { return Err(unsupported()) };
        let [LevelSpec { growth: Growth::Tiering { runs_max, share }, .. }, last] = levels.as_slice() else {
            return Err(unsupported());
        };
        let Growth::Leveling { .. } = last.growth else { return Err(unsupported()) };
        // The simulation does not track which items are obsolete versions: smaller shares bound them.
        if *share > GARBAGE_SHARE_MAX {
            return Err(unsupported());
        }
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
            sharding: *sharding,
            runs_max: *runs_max,
            share: *share,
            expected_keys,
            segment_records_max,
            keys,
            log,
            runs: Vec::new(),
            sorted: vec![false; keys as usize],
            sorted_count: 0,
            counts: Counts::default(),
        };
        simulation.begin_log();
        Ok(simulation)
    }

    /// Puts all keys of `stream` once, in random order.
    pub fn load(&mut self, stream: &RequestStream) -> SimulatedCost {
        self.counts = Counts::default();
        (0..stream.keys()).for_each(|rank| self.write(stream.key_of_rank(rank), false));
        self.cost()
    }

    /// Writes `requests` times; a share of `delete_share` of the writes delete.
    pub fn update(&mut self, stream: &mut RequestStream, requests: u64, delete_share: f64) -> SimulatedCost {
        self.counts = Counts::default();
        for _ in 0..requests {
            let key = stream.next_key();
            let is_delete = delete_share > 0.0 && stream.next_chance() < delete_share;
            self.write(key, is_delete);
        }
        self.cost()
    }

    /// Keys in the sorted run.
    pub fn sorted_keys(&self) -> u64 {
        self.sorted_count
    }

    fn write(&mut self, key: u32, is_delete: bool) {
        let shard = self.place(key, self.log.shard_bits);
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

    /// Which of 2^bits equal parts a key is in.
    fn place(&self, key: u32, bits: u32) -> usize {
        ((u64::from(key) << bits) / self.keys) as usize
    }

    fn begin_log(&mut self) {
        let items = self.sorted_count + self.run_items();
        let shards = self.sharding.shards(items);
        self.log.shard_bits = shards.ilog2();
        self.log.entries_max = self.sharding.log_entries(items) as usize;
        self.log.shards = vec![Vec::new(); shards as usize];
        self.log.records = 0;
        self.log.number += 1;
    }

    fn freeze(&mut self) {
        let shards = std::mem::take(&mut self.log.shards);
        let deleted = &self.log.deleted;
        let section = |keys: Vec<u32>| -> Option<Vec<(u32, bool)>> {
            if keys.is_empty() {
                return None;
            }
            Some(keys.into_iter().map(|key| (key, deleted[key as usize])).collect())
        };
        let sections: Vec<_> = shards.into_iter().map(section).collect();
        self.counts.hashed += sections.iter().flatten().map(|section| section.len() as u64).sum::<u64>();
        self.runs.push(Run { shard_bits: self.log.shard_bits, sections });
        self.begin_log();
        while let Some(unit) = self.due() {
            self.merge(unit);
        }
        let items = self.run_items() as f64;
        self.counts.samples += 1.0;
        self.counts.records += items + self.sorted_count as f64;
        self.counts.runs += items;
    }

    fn run_items(&self) -> u64 {
        let sections = self.runs.iter().flat_map(|run| run.sections.iter().flatten());
        sections.map(|section| section.len() as u64).sum()
    }

    /// The unit to merge next, if any is due.
    fn due(&self) -> Option<Unit> {
        let mut units = Vec::new();
        let bits_max = self.runs.iter().map(|run| run.shard_bits).max().unwrap_or(0);
        self.collect(0, 0, bits_max, &mut units);
        let present = (self.sorted_count + self.run_items()).max(self.expected_keys) as f64;
        let freeze_items = ((self.log.entries_max as u64) << self.log.shard_bits)
            .min(self.segment_records_max.max(1)) as f64;
        let shards = f64::from(1 << self.log.shard_bits);
        let runs_items = policy::mean_runs(f64::from(self.runs_max), shards) * freeze_items;
        let items_max = (self.share * present).max(freeze_items).min(runs_items);
        let bounds = YoungestBounds { runs_max: self.runs_max, items_max, by_obsolete: 0.0, collects: false };
        let choice = policy::of_youngest(&Units(&units), &bounds)?;
        (choice.pressure > 1.0).then_some(units[choice.place])
    }

    /// Collects the parts for which some run has a section of exactly their size; other parts are halved.
    fn collect(&self, bits: u32, index: u64, bits_max: u32, units: &mut Vec<Unit>) {
        let is_unit = |run: &Run| run.shard_bits == bits && run.sections[index as usize].is_some();
        if self.runs.iter().any(is_unit) {
            let mut unit = Unit { bits, index, items: 0, runs: 0 };
            for run in self.runs.iter().filter(|run| run.shard_bits >= bits) {
                let sections = &run.sections[within_unit(run.shard_bits, bits, index)];
                unit.items += sections.iter().flatten().map(|section| section.len() as u64).sum::<u64>();
                unit.runs += u32::from(sections.iter().any(Option::is_some));
            }
            units.push(unit);
        } else if bits < bits_max {
            self.collect(bits + 1, index * 2, bits_max, units);
            self.collect(bits + 1, index * 2 + 1, bits_max, units);
        }
    }

    fn merge(&mut self, unit: Unit) {
        // Old runs first, so that the newest write of a key takes effect.
        for run in self.runs.iter_mut().filter(|run| run.shard_bits >= unit.bits) {
            let sections = within_unit(run.shard_bits, unit.bits, unit.index);
            for section in run.sections[sections].iter_mut().filter_map(Option::take) {
                for (key, is_deleted) in section {
                    let present = &mut self.sorted[key as usize];
                    self.sorted_count = self.sorted_count + u64::from(!is_deleted) - u64::from(*present);
                    *present = !is_deleted;
                }
            }
        }
        self.runs.retain(|run| run.sections.iter().any(Option::is_some));
        let start = |index: u64| ((u128::from(index) * u128::from(self.keys)) >> unit.bits) as usize;
        let range = start(unit.index)..start(unit.index + 1);
        self.counts.sorted += self.sorted[range].iter().filter(|&&present| present).count() as u64;
    }

    fn cost(&self) -> SimulatedCost {
        let Counts { writes, hashed, sorted, samples, records, runs } = self.counts;
        let per_write = |count: u64| count as f64 / writes as f64;
        let freeze_items = (writes as f64 / samples.max(1.0)).min(hashed as f64 / samples.max(1.0));
        SimulatedCost {
            writes: vec![
                Component::new("log", 1.0),
                Component::new("level 0", per_write(hashed)),
                Component::new("level 1", per_write(sorted)),
            ],
            records_per_key: records / samples / self.keys as f64,
            runs: runs / samples / freeze_items.max(1.0),
        }
    }
}

fn within_unit(shard_bits: u32, bits: u32, index: u64) -> std::ops::Range<usize> {
    let shift = shard_bits - bits;
    (index << shift) as usize..((index + 1) << shift) as usize
}

fn unsupported() -> ModelError {
    let reason =
        "the simulation executes one tiering level, of at most a quarter of the items, over a leveling level";
    ModelError::IllegalPlan(PlanError(reason.to_owned()))
}

/// Units of the runs, as the policy sees them.
struct Units<'a>(&'a [Unit]);

impl Shape for Units<'_> {
    fn places(&self) -> usize {
        self.0.len()
    }

    fn runs(&self, place: usize) -> f64 {
        f64::from(self.0[place].runs)
    }

    fn items(&self, place: usize) -> f64 {
        self.0[place].items as f64
    }

    /// Items have no size here.
    fn bytes(&self, _: usize) -> f64 {
        0.0
    }

    /// The simulator counts the records that merges drop, and bounds none.
    fn obsolete(&self, _: usize) -> f64 {
        0.0
    }

    fn span(&self, place: usize) -> f64 {
        0.5f64.powi(self.0[place].bits as i32)
    }

    fn runs_full(&self, _: usize, runs_max: u32) -> f64 {
        f64::from(runs_max)
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
        assert!((engine.sorted_keys() as f64 / (0.7 * keys as f64) - 1.0).abs() < 0.03);
        let distribution = KeyDistribution::uniform(keys as f64).unwrap();
        // All records count the same in the simulation, so a tombstone must be as large as an item.
        let item = ItemSize { key_bytes: 116.0, value_bytes: 0.0, deviation_bytes: 0.0 };
        let workload = Workload { delete_share: 0.3, ..Workload::updates(distribution, item) };
        assert_agrees(&updated, model(workload), 0.05, "deletes");
    }

    #[test]
    fn other_plans_are_refused() {
        let Plan::Levels { sharding, log, levels } = Plan::silt() else { unreachable!() };
        let plan = Plan::Levels { sharding, log, levels: levels[1..].to_vec() };
        assert!(EngineSimulation::new(&plan, 10, 0, UNLIMITED).is_err());
        assert!(EngineSimulation::new(&Plan::silt_tiering(), 10, 0, UNLIMITED).is_err());
    }
}
