//! [`LevelsSimulation`]: the engine's levels of any plan, executed by key positions. What merges next is the engine's
//! own policy ([decision 0053](../../../../docs/decisions/0053-one-merge-policy.md)).

use std::ops::Range;
use std::rc::Rc;

use alluvium_model::policy::{Bounds, Choice, Holding, Shape, most_due};
use alluvium_model::{GARBAGE_SHARE_MAX, Growth, LevelSpec, LevelsPlan, ModelError, Plan, PlanError};

use super::containers::{
    Container, ContainersShape, POSITIONS, Record, Table, TableBytes, placed, records_within, within,
};

/// The levels of a keyspace.
#[derive(Debug)]
pub struct LevelsSimulation {
    specs: Vec<LevelSpec>,
    tables: TableBytes,
    /// Number of keys that the store was told to expect.
    expected_keys: u64,
    /// The youngest level, young to old.
    runs: Vec<Run>,
    /// The levels below it.
    levels: Vec<Vec<Container>>,
    /// Records written so far, by level.
    written: Vec<u64>,
}

/// A merge that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Merge {
    /// The number of the level that was merged; the youngest is 0.
    pub level: usize,
    /// Number of runs that its place had.
    pub runs: u32,
    /// Records written.
    pub records: u64,
}

/// A run of the youngest level: records by shard, sorted. Merged shards are `None`.
#[derive(Debug)]
struct Run {
    shard_bits: u32,
    repeats: f64,
    sections: Vec<Option<Vec<Record>>>,
}

/// A part of the youngest level that is merged together.
#[derive(Clone, Copy, Debug)]
struct Unit {
    bits: u32,
    index: u64,
    records: u64,
    obsolete: f64,
    runs: u32,
}

/// Where the records of a merge come from and go to.
struct Flow {
    /// Sections of runs, the youngest first.
    young: Vec<Vec<Record>>,
    from: Option<usize>,
    to: usize,
    stacks: bool,
}

impl LevelsSimulation {
    /// Empty levels of `plan`.
    ///
    /// # Errors
    /// A plan that the engine refuses.
    pub fn new(plan: &Plan, expected_keys: u64, tables: TableBytes) -> Result<Self, ModelError> {
        plan.validate()?;
        let refused = |reason: &str| ModelError::IllegalPlan(PlanError(reason.to_owned()));
        let Plan::Levels(LevelsPlan { levels: specs, .. }) = plan else {
            return Err(refused("the simulation executes plans of levels"));
        };
        if specs.len() < 2 || matches!(specs[0].growth, Growth::Leveling { .. }) {
            return Err(refused("the simulation executes runs over at least one more level"));
        }
        let (levels, written) = (vec![Vec::new(); specs.len() - 1], vec![0; specs.len()]);
        Ok(Self { specs: specs.clone(), tables, expected_keys, runs: Vec::new(), levels, written })
    }

    /// Records written so far, by level.
    pub fn written(&self) -> &[u64] {
        &self.written
    }

    /// Records in the runs of the youngest level.
    pub fn run_records(&self) -> u64 {
        self.runs.iter().map(Run::records).sum()
    }

    /// Records in a level below the youngest.
    pub fn level_records(&self, number: usize) -> u64 {
        records_within(&self.levels[number - 1], &(0..POSITIONS)) as u64
    }

    /// Records in all levels.
    pub fn records(&self) -> u64 {
        self.run_records() + (1..self.specs.len()).map(|number| self.level_records(number)).sum::<u64>()
    }

    /// Adds a run made of a log of 2^`shard_bits` shards: the last record of each key.
    pub fn freeze(&mut self, mut records: Vec<Record>, shard_bits: u32) {
        records.sort_unstable();
        let bounds_obsolete = matches!(self.specs[0].growth,
            Growth::Tiering { share, .. } if share > GARBAGE_SHARE_MAX);
        let repeats = if bounds_obsolete { self.repeats(&records, 0) } else { 0.0 };
        self.written[0] += records.len() as u64;
        let shard_of = |record: &Record| u64::from(record.0) >> (32 - shard_bits);
        let mut sections = vec![None; 1 << shard_bits];
        for section in records.chunk_by(|one, other| shard_of(one) == shard_of(other)) {
            sections[shard_of(&section[0]) as usize] = Some(section.to_vec());
        }
        self.runs.insert(0, Run { shard_bits, repeats, sections });
    }

    /// Merges what is most due, if anything is, while the log takes `freeze_items` records in `units` shards.
    pub fn merge_next(&mut self, freeze_items: f64, units: f64) -> Option<Merge> {
        let all_units = self.units();
        let (number, choice) = self.most_due(&all_units, freeze_items, units)?;
        let before: u64 = self.written.iter().sum();
        let runs = match number {
            0 => self.merge_unit(all_units[choice.place], choice.collects),
            _ => self.merge_container(number, choice.place, choice.collects),
        };
        let records = self.written.iter().sum::<u64>() - before;
        Some(Merge { level: number, runs, records })
    }

    fn most_due(&self, all_units: &[Unit], freeze_items: f64, units: f64) -> Option<(usize, Choice)> {
        let record_bytes = self.tables.record;
        let mut obsolete = vec![self.runs.iter().map(|run| run.records() as f64 * run.repeats).sum()];
        obsolete.extend(self.levels.iter().map(|level| level.iter().map(Container::obsolete).sum::<f64>()));
        let young = self.run_records();
        let holding = Holding {
            young_items: young as f64,
            items_below: (self.records() - young) as f64,
            obsolete,
            freeze_items,
            units,
            expected_items: self.expected_keys as f64,
            young_items_max: f64::INFINITY,
        };
        let bounds = Bounds::new(&self.specs, &holding);
        let young = bounds.choose(0, &UnitsShape { units: all_units, record_bytes });
        let below = self
            .levels
            .iter()
            .enumerate()
            .map(|(index, level)| bounds.choose(index + 1, &ContainersShape { level, record_bytes }));
        most_due(std::iter::once(young).chain(below))
    }

    fn units(&self) -> Vec<Unit> {
        let mut units = Vec::new();
        let bits_max = self.runs.iter().map(|run| run.shard_bits).max().unwrap_or(0);
        self.collect(0, 0, bits_max, &mut units);
        units
    }

    /// Collects the parts for which some run has a section of exactly their size; other parts are halved.
    fn collect(&self, bits: u32, index: u64, bits_max: u32, units: &mut Vec<Unit>) {
        let is_unit = |run: &Run| run.shard_bits == bits && run.sections[index as usize].is_some();
        if self.runs.iter().any(is_unit) {
            let mut unit = Unit { bits, index, records: 0, obsolete: 0.0, runs: 0 };
            for run in self.runs.iter().filter(|run| run.shard_bits >= bits) {
                let sections = &run.sections[run.shards_within(bits, index)];
                let records = sections.iter().flatten().map(|section| section.len() as u64).sum::<u64>();
                unit.records += records;
                unit.obsolete += records as f64 * run.repeats;
                unit.runs += u32::from(records > 0);
            }
            units.push(unit);
        } else if bits < bits_max {
            self.collect(bits + 1, index * 2, bits_max, units);
            self.collect(bits + 1, index * 2 + 1, bits_max, units);
        }
    }

    /// Returns the number of runs that were merged, as do the functions below.
    fn merge_unit(&mut self, unit: Unit, collects: bool) -> u32 {
        let mut young = Vec::new();
        for run in self.runs.iter_mut().filter(|run| run.shard_bits >= unit.bits) {
            let sections = run.shards_within(unit.bits, unit.index);
            young.push(run.sections[sections].iter_mut().filter_map(Option::take).flatten().collect());
        }
        self.runs.retain(|run| run.sections.iter().any(Option::is_some));
        let low = unit.index << (32 - unit.bits);
        let range = low..low + (POSITIONS >> unit.bits);
        let stacks = self.tiers(1) && !collects;
        let bytes = unit.records as f64 * self.tables.record;
        let cuts = self.tables.cut(&self.specs[1], &self.levels[0], &range, bytes, stacks);
        self.write(&Flow { young, from: None, to: 1, stacks }, &cuts);
        unit.runs
    }

    fn merge_container(&mut self, number: usize, place: usize, collects: bool) -> u32 {
        let level = &self.levels[number - 1];
        let Container { range, tables } = level[place].clone();
        let is_last = number + 1 == self.specs.len();
        let (flow, cuts) = if is_last {
            let flow = Flow { young: Vec::new(), from: None, to: number, stacks: false };
            (flow, self.tables.cut_within(level, &range))
        } else {
            let stacks = self.tiers(number + 1) && !collects;
            let bytes = records_within(level, &range) * self.tables.record;
            let spec = &self.specs[number + 1];
            let cuts = self.tables.cut(spec, &self.levels[number], &range, bytes, stacks);
            (Flow { young: Vec::new(), from: Some(number), to: number + 1, stacks }, cuts)
        };
        self.write(&flow, &cuts);
        tables.len() as u32
    }

    fn tiers(&self, number: usize) -> bool {
        matches!(self.specs[number].growth, Growth::Tiering { .. })
    }

    /// Writes a table for each of the ranges.
    fn write(&mut self, flow: &Flow, cuts: &[Range<u64>]) {
        for range in cuts {
            let mut records: Vec<Record> = Vec::new();
            for young in &flow.young {
                let before = |end: u64| young.partition_point(|&(key, _)| u64::from(key) < end);
                records.extend(&young[before(range.start)..before(range.end)]);
            }
            for &number in flow.from.iter().chain((!flow.stacks).then_some(&flow.to)) {
                records.extend(records_of(&self.levels[number - 1], range));
            }
            if records.is_empty() {
                continue;
            }
            // Stable: the youngest record of a key stays first.
            records.sort_by_key(|&(key, _)| key);
            records.dedup_by_key(|&mut (key, _)| key);
            let lies_over = flow.stacks && !within(&self.levels[flow.to - 1], range).is_empty();
            let hides =
                lies_over || self.levels[flow.to..].iter().any(|level| !within(level, range).is_empty());
            records.retain(|&(_, is_deleted)| hides || !is_deleted);
            self.written[flow.to] += records.len() as u64;
            let hidden_from = if flow.stacks { flow.to } else { flow.to + 1 };
            let counts_obsolete = self.tiers(flow.to) && hidden_from < self.specs.len();
            let repeats = if counts_obsolete { self.repeats(&records, hidden_from) } else { 0.0 };
            if let Some(from) = flow.from {
                self.levels[from - 1] = placed(&self.levels[from - 1], range, None, false);
            }
            if !records.is_empty() || !flow.stacks {
                let table = Rc::new(Table { range: range.clone(), records, repeats });
                let level = &mut self.levels[flow.to - 1];
                *level = placed(level, range, Some(&table), flow.stacks);
            }
        }
    }

    /// Share of the records that hide others from the level of this number on.
    fn repeats(&self, records: &[Record], number: usize) -> f64 {
        let hides = |record: &&Record| !record.1 && self.is_present(record.0, number);
        records.iter().filter(hides).count() as f64 / records.len().max(1) as f64
    }

    /// Whether the level of this number or one below shows the key.
    fn is_present(&self, key: u32, number: usize) -> bool {
        let find = |records: &[Record]| {
            records.binary_search_by_key(&key, |&(key, _)| key).ok().map(|found| !records[found].1)
        };
        let runs = self.runs.iter().filter(|_| number == 0);
        let in_runs = runs.filter_map(|run| {
            run.sections[(u64::from(key) >> (32 - run.shard_bits)) as usize].as_deref().and_then(find)
        });
        let position = u64::from(key)..u64::from(key) + 1;
        let levels = self.levels[number.max(1) - 1..].iter();
        let containers = levels.flat_map(|level| within(level, &position));
        let in_tables = containers.flat_map(|container| &container.tables);
        in_runs.chain(in_tables.filter_map(|table| find(&table.records))).next().unwrap_or(false)
    }
}

/// The records of a level in `range`, young ones of a key before old ones.
fn records_of<'a>(level: &'a [Container], range: &'a Range<u64>) -> impl Iterator<Item = &'a Record> {
    within(level, range).iter().flat_map(move |container| {
        let part = container.range.start.max(range.start)..container.range.end.min(range.end);
        container.tables.iter().flat_map(move |table| table.within(&part))
    })
}

impl Run {
    fn records(&self) -> u64 {
        self.sections.iter().flatten().map(|section| section.len() as u64).sum()
    }

    fn shards_within(&self, bits: u32, index: u64) -> Range<usize> {
        let shift = self.shard_bits - bits;
        (index << shift) as usize..((index + 1) << shift) as usize
    }
}

/// The youngest level, as the policy sees it.
struct UnitsShape<'a> {
    units: &'a [Unit],
    record_bytes: f64,
}

impl Shape for UnitsShape<'_> {
    fn places(&self) -> usize {
        self.units.len()
    }

    fn runs(&self, place: usize) -> f64 {
        f64::from(self.units[place].runs)
    }

    fn items(&self, place: usize) -> f64 {
        self.units[place].records as f64
    }

    fn bytes(&self, place: usize) -> f64 {
        self.items(place) * self.record_bytes
    }

    fn obsolete(&self, place: usize) -> f64 {
        self.units[place].obsolete
    }

    fn span(&self, place: usize) -> f64 {
        0.5f64.powi(self.units[place].bits as i32)
    }

    fn runs_full(&self, _: usize, runs_max: u32) -> f64 {
        f64::from(runs_max)
    }
}
