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
    Filter, GARBAGE_SHARE_MAX, Growth, LevelSpec, Plan, PlanError, TIERS_GARBAGE_SHARE_MAX, TableLayout,
    merge_delay_ns,
};
use crate::policy::{self, Choice, YoungestBounds, mean_runs, runs_full};

/// Number of parts of the hash space that are distinguished below the youngest level, and the maximum in it. More parts
/// would be staggered more finely, with no visible effect.
const PLACES: usize = 128;
/// How many times longer merges take that make buckets, which are balanced.
const BUCKET_SLOWNESS: f64 = 1.3;
/// Number of times between two freezes that the backlog of merges is checked.
const STEPS: f64 = 8.0;

/// A store that is loaded and overwritten.
/// Takes some thousand evaluations of a primitive for a phase that writes every item once. Valid for stores without
/// deletes and expiry whose places are not so large that their bytes trigger merges.
#[derive(Debug)]
pub struct Phases<'a> {
    model: &'a PlanModel,
    specs: &'a [LevelSpec],
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

/// The maximum that runs may hold.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    items_max: f64,
    garbage_max: f64,
    /// Items of the level when every place of it is full.
    room: f64,
    /// Records of a log.
    freeze_items: f64,
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
        let Plan::Levels { sharding, levels: specs, .. } = &model.plan else {
            return Err(refused("a chained plan has no levels that fill"));
        };
        let begins_with_runs = matches!(specs[0].growth, Growth::Tiering { .. });
        if specs.len() < 2 || !begins_with_runs {
            return Err(refused("phases are those of runs over at least one more level"));
        }
        let keys = &model.workload.keys;
        let shards = sharding.shards(keys.keys() as u64);
        let units = shards.min(PLACES as u64) as usize;
        let places = |number| if number == 0 { units } else { PLACES };
        Ok(Self {
            model,
            specs,
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
        for (number, (spec, records)) in self.specs.iter().zip(&self.records).enumerate() {
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
        self.specs.iter().zip(&self.levels).collect()
    }

    fn present(&self) -> f64 {
        self.levels.iter().map(|level| level.items(&self.writes)).sum()
    }

    /// Number of records for which the log is cut.
    fn cut_for(&self) -> f64 {
        let (present, expected) = (self.present(), self.model.workload.expected_keys);
        self.model.plan.items_sharded(present as u64, expected as u64) as f64
    }

    /// Writes from one freeze to the next.
    fn log_interval(&mut self, fresh_share: f64) -> Result<f64, ModelError> {
        let Plan::Levels { sharding, log, .. } = &self.model.plan else { unreachable!("it was checked") };
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
        self.taken_over[0] += self.model.covered_as_bloom_items(&self.specs[0], items);
        self.levels[0].push_everywhere(run);
        self.log_since = to;
    }

    /// Writers write and are slowed; merges use the time that this takes.
    fn write_until(&mut self, end: f64) {
        let Rules { put_ns, merge_byte_ns, .. } = self.model.rules;
        let writes = (end - self.writes.now()) / STEPS;
        for step in (0..STEPS as u32).rev() {
            let pressures = self.dues().map(|(_, due)| due.slowing).fold(0.0, f64::max);
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
            let levels = self.specs.iter().zip(&self.levels).collect::<Vec<_>>();
            self.memory.note(&self.writes, writes, frozen_share, |memory| {
                memory.bytes_now(self.model, &levels, &self.writes)
            });
        }
    }

    /// Merges what is most due. Returns how long that takes in nanoseconds, or `None` if nothing is due.
    fn merge_next(&mut self) -> Option<f64> {
        let most = self.dues().max_by(|(_, one), (_, other)| one.pressure.total_cmp(&other.pressure));
        let (level, due) = most.filter(|(_, due)| due.pressure > 1.0)?;
        let runs = self.levels[level].runs(due.place);
        let (target, records) = self.merge(level, due.place, due.collects);
        self.records[target] += records;
        let merges = if level == 0 { self.units_a_place } else { 1.0 };
        let reading_ns = merges * runs * self.model.rules.merged_run_ns;
        Some(reading_ns + self.writing_ns(target, records, merges))
    }

    /// Time in nanoseconds of `merges` merges, or conversions, that write `records` records into a level.
    fn writing_ns(&self, target: usize, records: f64, merges: f64) -> f64 {
        let spec = &self.specs[target];
        let slowness = if spec.table == TableLayout::Bucketed { BUCKET_SLOWNESS } else { 1.0 };
        let bytes = records * self.model.table_bytes(spec, self.model.workload.item.bytes());
        let Rules { merge_byte_ns, merge_ns, multi_level_item_ns, .. } = self.model.rules;
        let filter_ns = match spec.filter {
            Filter::MultiLevelCuckoo { .. } => records * multi_level_item_ns,
            _ => 0.0,
        };
        slowness * bytes * merge_byte_ns + filter_ns + merges * merge_ns
    }

    /// The state of the levels that have bounds.
    fn dues(&self) -> impl Iterator<Item = (usize, Choice)> {
        let bounds = self.bounds();
        let writes = &self.writes;
        let mut room = bounds.room;
        let last = self.specs.len() - 1;
        let below: f64 = self.levels[1..].iter().map(|level| level.items(writes)).sum();
        let old_values = self.old_values(bounds.freeze_items);
        let mut dues = Vec::new();
        for (number, (spec, level)) in self.specs.iter().zip(&self.levels).enumerate() {
            let shape = level.shape(writes);
            let collects = self.collects(number);
            let due = match spec.growth {
                Growth::Tiering { runs_max, .. } if number == 0 => {
                    let in_runs = level.garbage(writes) / bounds.garbage_max.max(1.0);
                    let by_obsolete = if collects { pressure(&old_values, 0) } else { in_runs };
                    let items_max = bounds.items_max;
                    policy::of_youngest(
                        &shape,
                        &YoungestBounds { runs_max, items_max, by_obsolete, collects },
                    )
                }
                Growth::Tiering { runs_max, .. } if number == last => {
                    policy::of_last_tiering(&shape, runs_max)
                }
                Growth::Tiering { runs_max, .. } => {
                    room *= f64::from(runs_max);
                    let by_obsolete = match collects {
                        true => pressure(&old_values, number),
                        false => level.garbage(writes) / (GARBAGE_SHARE_MAX * below).max(1.0),
                    };
                    policy::of_tiering(&shape, runs_max, by_obsolete, collects)
                }
                Growth::Leveling { .. } if number == last => None,
                Growth::Leveling { ratio } => {
                    room *= ratio;
                    policy::of_leveling(&shape, room)
                }
            };
            dues.extend(due.map(|due| (number, shape.locate(due))));
        }
        dues.into_iter()
    }

    /// The level above the last whose obsolete versions are to be dropped first, and how far those of all these levels
    /// are over their bound.
    fn old_values(&self, freeze_items: f64) -> Option<(usize, f64)> {
        let last = self.levels.len() - 1;
        let of_level: Vec<f64> = self.levels.iter().map(|level| level.garbage(&self.writes)).collect();
        let all: f64 = of_level.iter().sum();
        let items_max = (TIERS_GARBAGE_SHARE_MAX * (self.present() - all).max(0.0)).max(freeze_items);
        let collectable = (0..last).filter(|&number| self.collects(number) && of_level[number] > 0.0);
        let foulest = collectable.max_by(|&one, &other| of_level[one].total_cmp(&of_level[other]));
        foulest.map(|number| (number, of_level[..last].iter().sum::<f64>() / items_max.max(1.0)))
    }

    fn bounds(&self) -> Bounds {
        let Plan::Levels { sharding, log, .. } = &self.model.plan else { unreachable!("it was checked") };
        let Growth::Tiering { runs_max, .. } = self.specs[0].growth else { unreachable!("it was checked") };
        let present = self.present();
        let share_items = self.specs[0].growth.items_max(present.max(self.model.workload.expected_keys));
        let items = self.cut_for() as u64;
        let by_index = (sharding.log_entries(items) * sharding.shards(items)) as f64;
        let by_bytes = log.segment_bytes_max as f64 / self.model.log_record_bytes();
        let freeze_items = by_index.min(by_bytes);
        let units = self.levels[0].places() as f64;
        let runs_items = mean_runs(f64::from(runs_max), units) * freeze_items;
        let items_max = share_items.max(freeze_items).min(runs_items);
        let full = runs_full(items_max / freeze_items, units).min(f64::from(runs_max));
        let garbage = self.levels[0].garbage(&self.writes);
        let garbage_max = match self.ends_garbage(0) {
            true => (GARBAGE_SHARE_MAX * (present - garbage)).max(freeze_items),
            false => f64::INFINITY,
        };
        Bounds { items_max, garbage_max, room: full * freeze_items, freeze_items }
    }

    /// Merges a place into the next level, together with what that level has there if obsolete versions are to be
    /// dropped. A place of the last level is merged into itself. Returns the level that got records, and how many.
    fn merge(&mut self, number: usize, place: usize, collects: bool) -> (usize, f64) {
        let (from, to) = self.levels[number].take(place);
        if number + 1 == self.specs.len() {
            self.levels[number].push(place, Run { from, to, repeats: 0.0 });
            return (number, self.writes.keys(from, to) * self.levels[number].span());
        }
        let target = number + 1;
        let children = self.levels[target].places() / self.levels[number].places();
        let tiers = matches!(self.specs[target].growth, Growth::Tiering { .. });
        let is_last = target + 1 == self.specs.len();
        let pushes = tiers && !collects;
        let level = &mut self.levels[target];
        let spec = &self.specs[target];
        let (mut records, mut taken_over) = (0.0, 0.0);
        for child in place * children..(place + 1) * children {
            let run = if pushes { Run { from, to, repeats: 0.0 } } else { level.joined(child, from, to) };
            let hides = tiers && (pushes || !is_last);
            let repeats = if hides { self.writes.repeats(run.from, run.to) } else { 0.0 };
            let run = Run { repeats, ..run };
            records += self.writes.keys(run.from, run.to) * level.span();
            if pushes {
                let share = self.model.share_taken_over(spec, target, level.runs(child));
                taken_over += share * level.items_of(&self.writes, child);
            }
            level.push(child, run);
        }
        self.taken_over[target] += taken_over;
        (target, records)
    }

    /// Whether merging the runs of a tiering level drops the obsolete versions under them, as in the engine.
    fn ends_garbage(&self, number: usize) -> bool {
        self.specs.get(number + 1).is_none_or(|below| matches!(below.growth, Growth::Leveling { .. }))
    }

    fn counts_garbage_of_runs(&self) -> bool {
        match self.specs[0].growth {
            Growth::Tiering { share, .. } => share > GARBAGE_SHARE_MAX,
            Growth::Leveling { .. } => false,
        }
    }

    /// Whether the level and the next one are tiering: then passing on runs drops few obsolete versions.
    fn collects(&self, number: usize) -> bool {
        matches!(self.specs[number].growth, Growth::Tiering { .. }) && !self.ends_garbage(number)
    }
}

/// How far obsolete versions are over their bound, if level `number` is the one to be merged for that; else 0.
fn pressure(old_values: &Option<(usize, f64)>, number: usize) -> f64 {
    old_values.filter(|&(foulest, _)| foulest == number).map_or(0.0, |(_, pressure)| pressure)
}

fn refused(reason: &str) -> ModelError {
    ModelError::IllegalPlan(PlanError(reason.to_owned()))
}
