//! [`Phases`]: what a plan writes while a store is loaded and then overwritten, phase after phase.
//!
//! [`PlanModel::cost`] is the mean over all time for a store of constant size. A phase differs: overwriting as many
//! items as there are begins with what the load left in each level, and ends before deep levels have merged twice. So
//! the engine's rules of what merges when are executed here, in expectation. That needs no keys: all records in one run
//! at one place were written in one interval of time, and the number of different keys that an interval's writes name
//! is known ([`KeyDistribution::unique`](crate::KeyDistribution::unique)).

use super::evaluate::PlanModel;
use super::phase_level::{PhaseLevel, Run, Writes};
use super::phase_memory::PhaseMemory;
use super::rules::Rules;
use super::stack::Stack;
use super::stream::WriteStream;
use crate::error::{ModelError, within};
use crate::models::Component;
use crate::plan::{
    Filter, GARBAGE_SHARE_MAX, Growth, LevelSpec, LevelsPlan, Plan, PlanError, TableLayout, merge_delay_ns,
};
use crate::policy::{Bounds, Choice, Holding, most_due};

/// Number of parts of the hash space that are distinguished below the youngest level, and the maximum in it. More parts
/// would be staggered more finely, with no visible effect.
const PLACES: usize = 128;
/// How many times longer merges take that make buckets, which are balanced.
const BUCKET_SLOWNESS: f64 = 1.3;
/// The share of a memory limit that the engine plans for.
const YOUNG_SHARE: f64 = 0.875;
/// Number of times between two freezes that the backlog of merges is checked.
const STEPS: f64 = 8.0;

/// A store that is loaded and overwritten.
/// Takes some thousand evaluations of a primitive for a phase that writes every item once. Valid for stores without
/// deletes and expiry whose places are not so large that their bytes trigger merges.
#[derive(Debug)]
pub struct Phases<'a> {
    model: &'a PlanModel,
    plan: &'a LevelsPlan,
    levels: Vec<PhaseLevel>,
    /// Parts of each place of the youngest level that are merged one by one.
    units_a_place: f64,
    writes: Writes,
    /// When the log began.
    log_since: f64,
    /// Records written into each level in this phase.
    records: Vec<f64>,
    /// Records in each level whose filters were written again with tables stacked on them.
    taken_over: Vec<f64>,
    /// Time available to merges, less what the one in progress takes, in nanoseconds.
    merging_ns: f64,
    /// Time that the conversion of the most recently frozen log still takes.
    converting_ns: f64,
    memory: PhaseMemory,
}

impl<'a> Phases<'a> {
    /// An empty store under the model's plan and rules, for the keys and items of its workload.
    ///
    /// # Errors
    /// A plan that the engine refuses or that has no levels; figures out of range.
    pub fn new(model: &'a PlanModel) -> Result<Self, ModelError> {
        model.plan.validate()?;
        model.workload.validate()?;
        model.rules.validate()?;
        let Plan::Levels(plan) = &model.plan else {
            return Err(refused("a chained plan has no levels that fill"));
        };
        let specs = &plan.levels;
        let begins_with_runs = matches!(specs[0].growth, Growth::Tiering { .. });
        if specs.len() < 2 || !begins_with_runs {
            return Err(refused("phases are those of runs over at least one more level"));
        }
        let keys = &model.workload.keys;
        let shards = plan.sharding.shards(keys.keys() as u64);
        let units = shards.min(PLACES as u64) as usize;
        let places = |number| if number == 0 { units } else { PLACES };
        Ok(Self {
            model,
            plan,
            levels: (0..specs.len()).map(|number| PhaseLevel::new(places(number))).collect(),
            units_a_place: shards as f64 / units as f64,
            writes: Writes::none(keys.clone()),
            log_since: 0.0,
            records: vec![0.0; specs.len()],
            taken_over: vec![0.0; specs.len()],
            merging_ns: 0.0,
            converting_ns: 0.0,
            memory: PhaseMemory::default(),
        })
    }

    /// Puts every key once. Returns the bytes written for each byte of the user's, by log and level. Must be called
    /// before anything else.
    pub fn load(&mut self) -> Result<Vec<Component>, ModelError> {
        assert!(self.writes.now() == 0.0, "a store is loaded when it is empty");
        let keys = self.model.workload.keys.keys();
        self.writes.begin_load(keys);
        self.run(keys, 1.0)
    }

    /// Writes `writes` times to present keys, by their popularity. Returns the same as [`load`](Self::load).
    ///
    /// # Errors
    /// A number of writes that is not positive.
    pub fn update(&mut self, writes: f64) -> Result<Vec<Component>, ModelError> {
        within("writes", writes, f64::MIN_POSITIVE, 1e15)?;
        self.run(writes, 0.0)
    }

    fn run(&mut self, writes: f64, fresh_share: f64) -> Result<Vec<Component>, ModelError> {
        let model = self.model;
        self.records.fill(0.0);
        self.taken_over.fill(0.0);
        let end = self.writes.now() + writes;
        self.memory.begin(end - writes / 2.0);
        loop {
            let freeze = (self.log_since + self.log_interval(fresh_share)?).max(self.writes.now());
            self.write_until(freeze.min(end));
            if freeze > end {
                break;
            }
            self.freeze();
        }
        // Merges that are behind catch up.
        while self.merge_next().is_some() {}
        (self.merging_ns, self.converting_ns) = (0.0, 0.0);
        let user = model.workload.item.bytes();
        let mut written = vec![Component::new("log", model.log_record_bytes() / user)];
        for (number, (spec, records)) in self.plan.levels.iter().zip(&self.records).enumerate() {
            let taken_over = model.taken_over_bytes(self.taken_over[number]);
            let bytes = records * model.table_bytes(spec, user) + taken_over;
            written.push(Component::new(format!("level {number}"), bytes / (writes * user)));
        }
        Ok(written)
    }

    /// Bytes of filters and indexes in memory for each item, on average over the second half of the last phase.
    pub fn bytes_per_item_second_half(&self) -> f64 {
        self.memory.mean_bytes_per_item()
    }

    /// Bytes of filters and indexes in memory for each item, as the last phase left it when merges had caught up.
    pub fn bytes_per_item(&self) -> f64 {
        let bytes = self.memory.bytes_now(self.model, &self.levels_by_spec(), &self.writes);
        bytes / self.writes.present()
    }

    pub(super) fn model(&self) -> &PlanModel {
        self.model
    }

    pub(super) fn writes(&self) -> &Writes {
        &self.writes
    }

    pub(super) fn memory(&self) -> &PhaseMemory {
        &self.memory
    }

    /// Share of the keys whose newest record is in the log.
    pub(super) fn found_in_log(&self) -> f64 {
        self.writes.keys(self.log_since, self.writes.now()) / self.writes.present()
    }

    pub(super) fn levels_by_spec(&self) -> Vec<(&LevelSpec, &PhaseLevel)> {
        self.plan.levels.iter().zip(&self.levels).collect()
    }

    fn present(&self) -> f64 {
        self.levels.iter().map(|level| level.items(&self.writes)).sum()
    }

    /// Number of records for which the log is cut.
    fn cut_for(&self) -> f64 {
        let (present, expected) = (self.present(), self.model.workload.expected_keys);
        self.plan.items_sharded(present as u64, expected as u64) as f64
    }

    /// Writes from one freeze to the next.
    fn log_interval(&mut self, fresh_share: f64) -> Result<f64, ModelError> {
        let LevelsPlan { sharding, log, .. } = self.plan;
        let stream = WriteStream { keys: self.model.workload.keys.clone(), fresh_share };
        let (workload, rules) = (&self.model.workload, &self.model.rules);
        let stack = Stack::with_log(sharding, log, &stream, workload, rules, self.cut_for());
        within("writes of a log", stack.log_interval, f64::MIN_POSITIVE, f64::MAX)?;
        self.memory.set_log(self.model, &stack);
        Ok(stack.log_interval.max(1.0))
    }

    fn freeze(&mut self) {
        let (from, to) = (self.log_since, self.writes.now());
        let repeats = if self.counts_garbage_of_runs() { self.writes.repeats(from, to) } else { 0.0 };
        let run = Run { from, to, repeats };
        let records = self.writes.keys(from, to);
        self.records[0] += records;
        self.converting_ns = self.writing_ns(0, records, 1.0);
        let level = &self.levels[0];
        let items: f64 = (0..level.places()).map(|place| level.items_of(&self.writes, place)).sum();
        self.taken_over[0] += self.model.covered_as_bloom_items(&self.plan.levels[0], items);
        self.levels[0].push_everywhere(run);
        self.log_since = to;
    }

    /// Writers write and are slowed; merges use the time that this takes.
    fn write_until(&mut self, end: f64) {
        let Rules { put_ns, merge_byte_ns, .. } = self.model.rules;
        let writes = (end - self.writes.now()) / STEPS;
        for step in (0..STEPS as u32).rev() {
            let pressures = self.choices().iter().flatten().map(|due| due.slowing).fold(0.0, f64::max);
            let step_ns = writes * (put_ns + merge_delay_ns(pressures));
            self.merging_ns += step_ns;
            self.writes.set_now(end - writes * f64::from(step));
            while self.merging_ns > 0.0 || merge_byte_ns == 0.0 {
                match self.merge_next() {
                    Some(nanoseconds) => self.merging_ns -= nanoseconds,
                    None => {
                        self.merging_ns = 0.0;
                        break;
                    }
                }
            }
            let frozen_share = (self.converting_ns / step_ns.max(1.0)).min(1.0);
            self.converting_ns = (self.converting_ns - step_ns).max(0.0);
            let levels = self.plan.levels.iter().zip(&self.levels).collect::<Vec<_>>();
            self.memory.note(&self.writes, writes, frozen_share, |memory| {
                memory.bytes_now(self.model, &levels, &self.writes)
            });
        }
    }

    /// Merges what is most due. Returns how long that takes in nanoseconds, or `None` if nothing is due.
    fn merge_next(&mut self) -> Option<f64> {
        let (level, due) = most_due(self.choices())?;
        let runs = self.levels[level].runs(due.place);
        let (target, records) = self.merge(level, due.place, due.collects);
        self.records[target] += records;
        let merges = if level == 0 { self.units_a_place } else { 1.0 };
        let reading_ns = merges * runs * self.model.rules.merged_run_ns;
        Some(reading_ns + self.writing_ns(target, records, merges))
    }

    /// Time in nanoseconds of `merges` merges, or conversions, that write `records` records into a level.
    fn writing_ns(&self, target: usize, records: f64, merges: f64) -> f64 {
        let spec = &self.plan.levels[target];
        let slowness = if spec.table == TableLayout::Bucketed { BUCKET_SLOWNESS } else { 1.0 };
        let bytes = records * self.model.table_bytes(spec, self.model.workload.item.bytes());
        let Rules { merge_byte_ns, merge_ns, multi_level_item_ns, .. } = self.model.rules;
        let filter_ns = match spec.filter {
            Filter::MultiLevelCuckoo { .. } => records * multi_level_item_ns,
            _ => 0.0,
        };
        slowness * bytes * merge_byte_ns + filter_ns + merges * merge_ns
    }

    /// What the levels merge next, those that have bounds.
    fn choices(&self) -> Vec<Option<Choice>> {
        let bounds = Bounds::new(&self.plan.levels, &self.holding());
        let levels = self.levels.iter().enumerate();
        let choose = |(number, level): (usize, &PhaseLevel)| {
            let shape = level.shape(&self.writes);
            bounds.choose(number, &shape).map(|choice| shape.locate(choice))
        };
        levels.map(choose).collect()
    }

    fn holding(&self) -> Holding {
        let LevelsPlan { sharding, log, .. } = self.plan;
        let items = self.cut_for() as u64;
        let by_index = (sharding.log_entries(items) * sharding.shards(items)) as f64;
        let by_bytes = log.segment_bytes_max as f64 / self.model.log_record_bytes();
        Holding {
            young_items: self.levels[0].items(&self.writes),
            items_below: self.levels[1..].iter().map(|level| level.items(&self.writes)).sum(),
            obsolete: self.levels.iter().map(|level| level.garbage(&self.writes)).collect(),
            freeze_items: by_index.min(by_bytes),
            units: self.levels[0].places() as f64,
            expected_items: self.model.workload.expected_keys,
            young_items_max: self.young_items_max(),
        }
    }

    /// Items of the youngest level for whose filters and indexes the other levels leave memory.
    fn young_items_max(&self) -> f64 {
        let limit = self.model.memory_limit_bytes;
        if limit.is_infinite() {
            return f64::INFINITY;
        }
        let bytes_of = |number: usize, spec: &LevelSpec| {
            let level = &self.levels[number];
            let state = self.memory.state(number, level, &self.writes);
            let records = level.items(&self.writes);
            let bytes = self.model.filter_bytes(spec, &state, records)
                + self.model.index_bytes(spec, &state, records);
            (bytes, records)
        };
        let below = self.plan.levels.iter().enumerate().skip(1);
        let below: f64 = below.map(|(number, spec)| bytes_of(number, spec).0).sum();
        let (young, records) = bytes_of(0, &self.plan.levels[0]);
        let item_bytes = if records > 0.0 { young / records } else { 0.0 };
        if item_bytes > 0.0 { (limit * YOUNG_SHARE - below).max(0.0) / item_bytes } else { f64::INFINITY }
    }

    /// Merges a place into the next level, together with what that level has there if obsolete versions are to be
    /// dropped. A place of the last level is merged into itself. Returns the level that got records, and how many.
    fn merge(&mut self, number: usize, place: usize, collects: bool) -> (usize, f64) {
        let (from, to) = self.levels[number].take(place);
        if number + 1 == self.plan.levels.len() {
            self.levels[number].push(place, Run { from, to, repeats: 0.0 });
            return (number, self.writes.keys(from, to) * self.levels[number].span());
        }
        let target = number + 1;
        let children = self.levels[target].places() / self.levels[number].places();
        let tiers = matches!(self.plan.levels[target].growth, Growth::Tiering { .. });
        let is_last = target + 1 == self.plan.levels.len();
        let pushes = tiers && !collects;
        let level = &mut self.levels[target];
        let spec = &self.plan.levels[target];
        let (mut records, mut taken_over) = (0.0, 0.0);
        for child in place * children..(place + 1) * children {
            let run = if pushes { Run { from, to, repeats: 0.0 } } else { level.joined(child, from, to) };
            let hides = tiers && (pushes || !is_last);
            let repeats = if hides { self.writes.repeats(run.from, run.to) } else { 0.0 };
            let run = Run { repeats, ..run };
            let items = self.writes.keys(run.from, run.to) * level.span();
            records += items;
            if pushes {
                let below = level.items_of(&self.writes, child);
                let runs = (level.runs(child), below / items.max(f64::MIN_POSITIVE));
                taken_over += self.model.share_taken_over(spec, target, runs) * below;
            }
            level.push(child, run);
        }
        self.taken_over[target] += taken_over;
        (target, records)
    }

    fn counts_garbage_of_runs(&self) -> bool {
        match self.plan.levels[0].growth {
            Growth::Tiering { share, .. } => share > GARBAGE_SHARE_MAX,
            Growth::Leveling { .. } => false,
        }
    }
}

fn refused(reason: &str) -> ModelError {
    ModelError::IllegalPlan(PlanError(reason.to_owned()))
}
