//! [`PlanModel`]: computes what a plan costs from the plan, a workload and rules.

use crate::error::{ModelError, within};
use crate::models::{Component, Cost, Lookup, Stage, bloom_false_positive_rate};
use crate::plan::{ChainedSpec, Filter, Index, LevelSpec, LevelsPlan, Plan, TableLayout};

use super::chained_log::ChainedLog;
use super::level_state::LevelState;
use super::residency::{Residency, Structure};
use super::rules::Rules;
use super::stack::Stack;
use super::stream::WriteStream;
use super::workload::Workload;

/// Number of sizes at which a growing store is evaluated.
const GROWTH_STEPS: u32 = 64;

/// A plan under a workload.
#[derive(Clone, Debug)]
pub struct PlanModel {
    /// The plan.
    pub plan: Plan,
    /// What is written and read.
    pub workload: Workload,
    /// What storing costs besides the items.
    pub rules: Rules,
    /// Maximum bytes of memory for log index, filters and indexes. What does not fit stays on the device: filters
    /// first, those of old levels before those of young ones, then indexes. Infinite for no limit.
    pub memory_limit_bytes: f64,
}

/// One level of a plan, on average over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelCost {
    /// Records in it, including obsolete versions and tombstones.
    pub records: f64,
    /// Runs over a key.
    pub runs: f64,
    /// Writes between two times that the level passes on the same key. Infinite for the last level.
    pub interval_writes: f64,
}

/// What a plan costs.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanCost {
    /// Writes are averaged over the growth of the store; reads, memory and space are those at its end.
    pub cost: Cost,
    /// The levels, young to old, without those that the data do not reach.
    pub levels: Vec<LevelCost>,
    /// Memory used to find items, averaged over the second half of the growth, in bytes per item.
    pub bytes_per_item_second_half: f64,
    /// Bytes of log held in memory in addition.
    pub write_buffer_bytes: f64,
    /// Device reads that a put waits for: those of chained plans, to find out in which chain a key is.
    pub reads_per_put: f64,
}

impl PlanModel {
    /// A model of the engine, of [`Plan::executed`], with enough memory for all filters and indexes.
    pub fn new(plan: Plan, workload: Workload) -> Self {
        Self { plan: plan.executed(), workload, rules: Rules::engine(), memory_limit_bytes: f64::INFINITY }
    }

    /// What the plan costs. Takes about ten evaluations of a primitive per level for a store of constant size, 64 times
    /// as many for a growing one.
    pub fn cost(&self) -> Result<PlanCost, ModelError> {
        self.plan.validate()?;
        self.workload.validate()?;
        self.rules.validate()?;
        within("memory-limit", self.memory_limit_bytes, 0.0, f64::INFINITY)?;
        match &self.plan {
            Plan::Chained(spec) => self.chained(spec),
            Plan::Levels(plan) if !self.workload.is_growing() => self.at(plan, self.workload.keys.keys()),
            Plan::Levels(plan) => self.growing(plan),
        }
    }

    fn growing(&self, plan: &LevelsPlan) -> Result<PlanCost, ModelError> {
        let (start, end) = (self.workload.start_keys, self.workload.keys.keys());
        let mut at_end = self.at(plan, end)?;
        let mut writes: Vec<Component> = Vec::new();
        let mut second_half = 0.0;
        let steps = f64::from(GROWTH_STEPS);
        for step in 0..GROWTH_STEPS {
            let keys = start + (end - start) * (f64::from(step) + 0.5) / steps;
            let here = self.at(plan, keys.max(1.0))?;
            for component in here.cost.writes {
                let amount = component.amount / steps;
                match writes.iter_mut().find(|known| known.name == component.name) {
                    Some(known) => known.amount += amount,
                    None => writes.push(Component { amount, ..component }),
                }
            }
            if step >= GROWTH_STEPS / 2 {
                second_half += here.bytes_per_item_second_half * 2.0 / steps;
            }
        }
        at_end.cost.writes = writes;
        at_end.bytes_per_item_second_half = second_half;
        Ok(at_end)
    }

    /// The plan at one size of the store.
    fn at(&self, plan: &LevelsPlan, keys: f64) -> Result<PlanCost, ModelError> {
        let levels = &plan.levels;
        let stream =
            WriteStream { keys: self.workload.keys.with_keys(keys)?, fresh_share: self.workload.fresh_share };
        let stack = Stack::new(plan, &stream, &self.workload, &self.rules)?;
        let live = stream.keys.keys() * self.workload.live_share();
        let mut structures = vec![Structure::log_index(stack.log_indexes_bytes(&self.rules))];
        let stored = self.stored(&stack);
        for (number, ((level, state), (records, _))) in
            levels.iter().zip(&stack.levels).zip(stored).enumerate()
        {
            structures.push(Structure::filter(number, self.filter_bytes(level, state, records)));
            structures.push(Structure::index(number, self.index_bytes(level, state, records)));
        }
        let residency = Residency::within(structures, self.memory_limit_bytes)?;
        let (lookup, cached) = (self.lookup(levels, &stack, &stream, &residency), self.cached_share(&stream));
        let cost = Cost {
            writes: self.writes(levels, &stack),
            reads_per_get: (1.0 - cached) * lookup.reads_per_get(),
            reads_per_miss: lookup.reads_per_miss(),
            memory: residency.memory(live),
            space: self.space(levels, &stack, live),
        };
        let bytes_per_item_second_half = cost.bytes_per_item();
        let levels = stack.levels.iter().map(|state| LevelCost {
            records: state.records,
            runs: state.runs,
            interval_writes: state.interval,
        });
        Ok(PlanCost {
            cost,
            levels: levels.collect(),
            bytes_per_item_second_half,
            write_buffer_bytes: (1.0 + self.rules.frozen_logs) * stack.log_interval * self.log_record_bytes(),
            reads_per_put: 0.0,
        })
    }

    fn writes(&self, levels: &[LevelSpec], stack: &Stack) -> Vec<Component> {
        let user = self.workload.written_bytes();
        let mut writes = vec![Component::new("log", self.log_record_bytes() / user)];
        for (number, (level, state)) in levels.iter().zip(&stack.levels).enumerate() {
            writes.push(Component::new(format!("level {number}"), self.level_writes(level, state)));
        }
        writes
    }

    /// Bytes written into the level for each byte that the user writes.
    pub(super) fn level_writes(&self, level: &LevelSpec, state: &LevelState) -> f64 {
        let user = self.workload.written_bytes();
        let amount = state.records_written * self.table_bytes(level, user)
            + state.live_written * self.table_bytes(level, self.workload.item.bytes());
        // Filters of bucketed tables are written again with the tables that are later stacked on them. A table that
        // replaces others copies none.
        let taken_over = self.filters_taken_over(level, state) * state.records_written;
        (amount + self.taken_over_bytes(taken_over)) / user
    }

    fn space(&self, levels: &[LevelSpec], stack: &Stack, live: f64) -> Vec<Component> {
        let mut space = vec![Component::new("log", self.log_space(stack, live))];
        for (number, (level, stored)) in levels.iter().zip(self.stored(stack)).enumerate() {
            let taken_over = self.filters_taken_over(level, &stack.levels[number]) * stored.0;
            let amount = self.level_space(level, stored, live)
                + self.taken_over_bytes(taken_over) / (live * self.workload.item.bytes());
            space.push(Component::new(format!("level {number}"), amount));
        }
        space
    }

    /// Bytes of log on the device for each live byte.
    pub(super) fn log_space(&self, stack: &Stack, live: f64) -> f64 {
        // The active log is half full, and its successor is created ahead.
        let logs = 1.5 + self.rules.frozen_logs;
        logs * stack.log_interval * self.log_record_bytes() / (live * self.workload.item.bytes())
    }

    /// Bytes of a level on the device for each live byte; `stored` from [`stored`](Self::stored).
    pub(super) fn level_space(&self, level: &LevelSpec, stored: (f64, f64), live: f64) -> f64 {
        let (records, mean_bytes) = stored;
        records * self.table_bytes(level, mean_bytes) / (live * self.workload.item.bytes())
    }

    /// Records on the device in each level, and their mean bytes of key and value.
    pub(super) fn stored(&self, stack: &Stack) -> Vec<(f64, f64)> {
        let mut above = 0.0;
        let levels = stack.levels.iter().enumerate().map(|(number, state)| {
            let is_last = number + 1 == stack.levels.len();
            let mean_bytes = if is_last { self.workload.item.bytes() } else { self.workload.written_bytes() };
            // While a store grows, the records of the young levels have not reached the last level yet.
            let records = if is_last {
                (state.records - self.workload.fresh_share * above).max(0.0)
            } else {
                state.records
            };
            above += state.records;
            (records, mean_bytes)
        });
        levels.collect()
    }

    pub(super) fn log_record_bytes(&self) -> f64 {
        let bytes = self.workload.written_bytes();
        bytes + self.rules.log_record_bytes + self.rules.length_bytes(bytes)
    }

    /// Bytes on the device of an item of `bytes` key and value bytes, including its share of filter and index.
    pub(super) fn table_bytes(&self, level: &LevelSpec, bytes: f64) -> f64 {
        let rules = &self.rules;
        let pages = match level.table {
            TableLayout::Bucketed => rules.bucket_item_bytes(bytes, self.workload.item.deviation_bytes),
            TableLayout::Hash => rules.page_bytes / self.items_per_page(level, bytes) / rules.hash_fill,
            TableLayout::Sorted => rules.page_bytes / self.items_per_page(level, bytes),
        };
        let indexes =
            if rules.stored_indexes { (self.filter_bits(level) + self.index_bits(level)) / 8.0 } else { 0.0 };
        pages + indexes
    }

    fn items_per_page(&self, level: &LevelSpec, bytes: f64) -> f64 {
        let items = self.rules.items_per_page(bytes, self.workload.item.deviation_bytes);
        // Pages end between cells; a page has 256 cells (docs/decisions/0003-pages-end-on-fences.md).
        let is_fenced = level.table == TableLayout::Sorted && level.index == Index::Fences;
        if is_fenced && !self.rules.straddle && items > 1.0 { items * (1.0 - 1.0 / 256.0) } else { items }
    }

    /// Memory of the level's filters, for the `records` records that are [`stored`](Self::stored) there.
    pub(super) fn filter_bytes(&self, level: &LevelSpec, state: &LevelState, records: f64) -> f64 {
        match level.filter {
            Filter::BloomCluster { on_flash } => records * self.cluster_memory_bits(on_flash, state) / 8.0,
            Filter::MultiLevelCuckoo { tag_bits } => {
                records * self.multi_level_memory_bits(level.growth, tag_bits) / 8.0
            }
            _ => records * self.filter_bits(level) / state.filter_crowding / 8.0,
        }
    }

    /// Memory of the level's indexes, for the same `records`.
    pub(super) fn index_bytes(&self, level: &LevelSpec, state: &LevelState, records: f64) -> f64 {
        records * self.index_bits(level) / 8.0 + state.sections * self.rules.section_bytes
    }

    /// Bits of filter per item.
    fn filter_bits(&self, level: &LevelSpec) -> f64 {
        match level.filter {
            Filter::None => 0.0,
            Filter::Cuckoo { tag_bits } => f64::from(tag_bits) / self.rules.filter_fill,
            Filter::Static { bits } => f64::from(bits) * self.rules.static_slots,
            Filter::Fragments { bits } => f64::from(bits),
            Filter::MultiLevelCuckoo { tag_bits } => self.multi_level_bits(tag_bits),
            Filter::BloomCluster { on_flash } => self.own_filter_bits(on_flash),
        }
    }

    /// Bits of index per item.
    fn index_bits(&self, level: &LevelSpec) -> f64 {
        let items = self.rules.items_per_page(self.workload.item.bytes(), self.workload.item.deviation_bytes);
        match (level.table, level.index) {
            (TableLayout::Hash, _) => {
                // Slots of the first item of each page, in an Elias-Fano list.
                ((items / self.rules.filter_fill).max(1.0).log2() + 2.0) / items
            }
            (TableLayout::Bucketed, _) => {
                self.rules.bucket_index_bits(self.workload.item.bytes(), self.workload.item.deviation_bytes)
            }
            (_, Index::Fences | Index::Implicit) => self.rules.fence_bits / items,
            (_, Index::Trie) => self.rules.trie_bits / items,
            // The ranks of the pages' first items are in an Elias-Fano list.
            (_, Index::TrieDense) => self.rules.dense_trie_bits + (items.max(1.0).log2() + 2.3) / items,
            (_, Index::ThreeLevel) => self.rules.three_level_bits,
            (_, Index::Offsets) => self.rules.offset_bits / self.rules.filter_fill,
        }
    }

    fn lookup(
        &self,
        levels: &[LevelSpec],
        stack: &Stack,
        stream: &WriteStream,
        residency: &Residency,
    ) -> Lookup {
        let gets = self.workload.gets;
        // The log's bytes are in memory until they are converted.
        let mut lookup = Lookup::default();
        lookup.stages.push(Stage::in_memory(stream.mean_found(stack.log_interval, gets)));
        for (number, (level, state)) in levels.iter().zip(&stack.levels).enumerate() {
            let is_last = number + 1 == stack.levels.len();
            let found = if is_last { 1.0 } else { stream.mean_found(state.interval, gets) };
            let resident = (residency.filter_share(number), residency.index_share(number));
            lookup.stages.push(self.stage(level, state, found, resident));
        }
        lookup
    }

    /// The level as lookups see it. `found` is the share of the gets of present keys that it or a younger level
    /// answers, `resident` the shares of its filters and of its index that are in memory.
    pub(super) fn stage(
        &self,
        level: &LevelSpec,
        state: &LevelState,
        found: f64,
        resident: (f64, f64),
    ) -> Stage {
        let (filter_share, index_share) = resident;
        let page_reads = match level.table {
            TableLayout::Bucketed => {
                self.rules.bucket_reads(self.workload.item.bytes(), self.workload.item.deviation_bytes)
            }
            TableLayout::Hash | TableLayout::Sorted => 1.0,
        };
        // Without its index in memory, a table reads a page of the index first.
        let page_reads = page_reads + 1.0 - index_share;
        // A lookup compares eight slots; this is the number of them that are taken.
        let errors = 8.0 * self.rules.filter_fill;
        let (runs, younger, absent, before) = match level.filter {
            Filter::None => (state.runs, state.younger, 1.0, 0.0),
            Filter::Cuckoo { tag_bits } => {
                let errors = errors * state.filter_crowding;
                (state.runs, state.younger, errors / 2f64.powi(tag_bits as i32), 0.0)
            }
            Filter::Static { bits } | Filter::Fragments { bits } => {
                (state.runs, state.younger, 0.5f64.powi(bits as i32), 0.0)
            }
            // One filter for all runs: at most one read, of the run that it names.
            Filter::MultiLevelCuckoo { tag_bits } => {
                let errors = errors / self.multi_level_room(level.growth);
                (state.occupied, 0.0, errors / 2f64.powi(tag_bits as i32), 0.0)
            }
            Filter::BloomCluster { on_flash } => {
                let absent = bloom_false_positive_rate(self.rules.bloom_bits);
                // A single table is read at once.
                let several = if on_flash { (state.runs - 1.0).clamp(0.0, 1.0) } else { 1.0 };
                let before = if on_flash { several } else { 0.0 };
                (state.runs, state.younger, absent * several + 1.0 - several, before)
            }
        };
        // If a filter is on the device, either a page of it is read or the runs are searched without it, whichever
        // costs less.
        let away = 1.0 - filter_share;
        let reading = 1.0 + state.runs * absent < state.runs;
        let (before, absent) = if away > 0.0 && level.filter != Filter::None {
            if reading { (before + away, absent) } else { (before, absent + away * (1.0 - absent)) }
        } else {
            (before, absent)
        };
        Stage {
            found,
            runs,
            younger,
            reads_absent: absent * page_reads,
            reads_present: page_reads,
            reads_before: before,
        }
    }

    fn chained(&self, spec: &ChainedSpec) -> Result<PlanCost, ModelError> {
        let stream = WriteStream { keys: self.workload.keys.clone(), fresh_share: self.workload.fresh_share };
        let cached = self.cached_share(&stream);
        let log = ChainedLog::new(self, spec, stream);
        let balance = log.balance();
        let in_memory = (0.5 + self.rules.frozen_logs) * log.segment_records();
        let reads = log.reads(log.parts(&balance), in_memory);
        let item_bytes = log.live * self.workload.item.bytes();
        // The segment that follows is created ahead.
        let ahead = log.segment_records() * log.record_bytes(self.workload.written_bytes());
        let cost = Cost {
            writes: log.writes(balance.moved),
            reads_per_get: (1.0 - cached) * reads.hit,
            reads_per_miss: reads.miss,
            memory: log.memory(balance.records, self.rules.frozen_logs),
            space: vec![
                Component::new("chained log", balance.bytes / item_bytes),
                Component::new("segment ahead", ahead / item_bytes),
            ],
        };
        let bytes_per_item = cost.bytes_per_item();
        if bytes_per_item * log.live > self.memory_limit_bytes {
            return Err(ModelError::OutOfRange {
                name: "memory-limit",
                value: self.memory_limit_bytes,
                expected: format!(
                    "directory and log index take {bytes_per_item:.3} bytes an item; make chains longer"
                ),
            });
        }
        let level =
            LevelCost { records: balance.records, runs: 1.0, interval_writes: balance.interval_writes };
        Ok(PlanCost {
            cost,
            levels: vec![level],
            bytes_per_item_second_half: bytes_per_item,
            write_buffer_bytes: (1.0 + self.rules.frozen_logs) * ahead,
            reads_per_put: reads.put,
        })
    }
}
