//! The model's prediction of a phase's cost, from the options alone, before the phase runs.
//!
//! The model predicts only where its assumptions hold: writes while loading and while overwriting uniformly, at full
//! speed; memory in the second half of these; reads, memory and space once merges have caught up. It predicts nothing
//! where gets and merges read at the same time, or where everything was merged on request.

use alluvium_model::models::Component;
use alluvium_model::plan_model::{
    ChainedPhases, ItemSize, Phases, PlanCost, PlanModel, Rules, Workload, young_writes,
};
use alluvium_model::{Growth, KeyDistribution, LevelsPlan, ModelError, Plan};
use serde_json::{Map, Value};

use super::config::StoreOptions;
use super::phase::Phase;
use crate::error::BenchError;

/// What has been done to the store so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Loaded, nothing overwritten.
    Loaded,
    /// Uniformly overwritten about once or more.
    Updated,
    /// A state that the model does not know.
    Other,
}

/// The result of a phase after those before it, executed by the plan's rules.
#[derive(Debug)]
struct Executed {
    /// Bytes written per byte of the user's, by log and level.
    writes: Vec<Component>,
    /// Bytes of memory per item, averaged over the phase's second half.
    second_half: f64,
    /// Bytes of memory per item when merges have caught up.
    bytes_per_item: f64,
    /// Reads for a get of a present and of an absent key at that time.
    reads: (f64, f64),
}

/// Predicts phase after phase.
#[derive(Debug)]
pub struct Predictor {
    plan: Plan,
    keys: KeyDistribution,
    /// Number of keys that the database expects; 0 if it was told none.
    expected_keys: f64,
    item: ItemSize,
    state: State,
    /// Number of levels whose tables are in a second directory.
    young_levels: Option<usize>,
    /// Maximum bytes of a log segment, and of all filters and indexes.
    limited_bytes: (u64, f64),
}

impl Predictor {
    /// A predictor before the first phase.
    pub fn new(options: &StoreOptions) -> Result<Self, BenchError> {
        let item = ItemSize {
            key_bytes: options.key_size as f64,
            value_bytes: options.value_size as f64,
            deviation_bytes: 0.0,
        };
        Ok(Self {
            plan: options.plan()?,
            keys: KeyDistribution::uniform(options.items as f64).map_err(refused)?,
            expected_keys: options.expected_items()? as f64,
            item,
            // A database that was kept was loaded and not overwritten.
            state: State::Loaded,
            young_levels: options.young_dir.is_some().then_some(options.young_levels),
            limited_bytes: (u64::MAX, f64::INFINITY),
        })
    }

    /// Predicts under a memory limit, which leaves this for a log segment and for all filters and indexes.
    pub fn limit(&mut self, (segment_bytes, index_bytes): (u64, u64)) {
        let index_bytes = if index_bytes == u64::MAX { f64::INFINITY } else { index_bytes as f64 };
        self.limited_bytes = (segment_bytes, index_bytes);
    }

    fn model(&self, workload: Workload, rules: Rules) -> PlanModel {
        let (segment_bytes, memory_limit_bytes) = self.limited_bytes;
        let mut plan = self.plan.clone();
        if let Plan::Levels(LevelsPlan { log, .. }) = &mut plan {
            log.segment_bytes_max = log.segment_bytes_max.min(segment_bytes);
        }
        PlanModel { rules, memory_limit_bytes, ..PlanModel::new(plan, workload) }
    }

    /// The metrics that `phase` will measure, by their names, as far as the model predicts them. Afterwards the phase
    /// counts as done.
    pub fn predict(&mut self, phase: Phase) -> Result<Map<String, Value>, BenchError> {
        let figures = self.figures(phase).map_err(refused)?;
        self.state = match phase {
            Phase::Load | Phase::Ingest => State::Loaded,
            Phase::Update => State::Updated,
            Phase::Sustain | Phase::Mixed if self.state == State::Updated => State::Updated,
            Phase::Settle | Phase::Get | Phase::Stream | Phase::All => self.state,
            Phase::Miss | Phase::Scan | Phase::Degrade => self.state,
            Phase::Sustain | Phase::Mixed | Phase::Flush | Phase::Compact | Phase::Reopen => State::Other,
            Phase::Expire | Phase::Delete | Phase::Snapshot => State::Other,
            Phase::Replan(name) => {
                self.plan = Plan::named(name).map_err(|error| BenchError::Usage(error.to_string()))?;
                State::Other
            }
        };
        Ok(figures.into_iter().map(|(name, value)| (name, value.into())).collect())
    }

    fn figures(&self, phase: Phase) -> Result<Vec<(String, f64)>, ModelError> {
        let executed = self.executed(phase)?;
        let writes = match (phase, &executed) {
            (Phase::Load | Phase::Update, Some(executed)) => Some(executed.writes.clone()),
            (Phase::Load, None) => Some(self.cost(State::Loaded, true)?.cost.writes),
            (Phase::Update, None) => Some(self.cost(State::Updated, true)?.cost.writes),
            _ => None,
        };
        let mut figures = writes.as_ref().map_or_else(Vec::new, |writes| named_writes(writes));
        if let Some((writes, levels)) = writes.as_ref().zip(self.young_levels) {
            let young = young_writes(writes, levels);
            figures.push(("young_directory_write_amplification".to_owned(), young));
        }
        let others = self.others(phase, executed.as_ref())?;
        figures.extend(others.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(figures)
    }

    /// The predictions besides writes. Memory is that of the plan's rules, if they were executed.
    fn others(
        &self,
        phase: Phase,
        executed: Option<&Executed>,
    ) -> Result<Vec<(&'static str, f64)>, ModelError> {
        let settled_bytes =
            |cost: &PlanCost| executed.map_or(cost.cost.bytes_per_item(), |executed| executed.bytes_per_item);
        Ok(match phase {
            Phase::Load => {
                let (busy, settled) = (self.cost(State::Loaded, true)?, self.cost(State::Loaded, false)?);
                let second_half =
                    executed.map_or(busy.bytes_per_item_second_half, |executed| executed.second_half);
                vec![
                    ("index_bytes_per_item", settled_bytes(&settled)),
                    ("index_bytes_per_item_second_half", second_half),
                    ("space_amplification", settled.cost.space_amplification()),
                ]
            }
            Phase::Update => {
                let busy = self.cost(State::Updated, true)?;
                let second_half =
                    executed.map_or(busy.cost.bytes_per_item(), |executed| executed.second_half);
                vec![("index_bytes_per_item_second_half", second_half)]
            }
            Phase::Get | Phase::Stream | Phase::All | Phase::Miss if self.state != State::Other => {
                let cost = self.cost(self.state, false)?;
                let (present, absent) = executed
                    .map_or((cost.cost.reads_per_get, cost.cost.reads_per_miss), |executed| executed.reads);
                let reads = if phase == Phase::Miss { absent } else { present };
                vec![("device_reads_per_get", reads), ("index_bytes_per_item", settled_bytes(&cost))]
            }
            _ => Vec::new(),
        })
    }

    /// The result of executing the plan's rules up to the end of `phase`; `None` if the mean over all time is as good.
    fn executed(&self, phase: Phase) -> Result<Option<Executed>, ModelError> {
        let updates = match (phase, self.state) {
            _ if !self.remembers_load() => return Ok(None),
            (Phase::Load, _) => 0,
            (_, State::Other) => return Ok(None),
            (Phase::Update, State::Loaded) => 1,
            (Phase::Update, State::Updated) => 2,
            (Phase::Get | Phase::Stream | Phase::All | Phase::Miss, state) => {
                u32::from(state == State::Updated)
            }
            _ => return Ok(None),
        };
        let workload = Workload::load(self.keys.keys(), self.item)?;
        let rules = Rules::engine_at_full_speed();
        let model = self.model(workload, rules);
        if matches!(self.plan, Plan::Chained(_)) {
            return self.executed_chained(&model, updates).map(Some);
        }
        let mut phases = Phases::new(&model)?;
        let mut writes = phases.load()?;
        for _ in 0..updates {
            writes = phases.update(self.keys.keys())?;
        }
        let (second_half, bytes_per_item) = (phases.bytes_per_item_second_half(), phases.bytes_per_item());
        let reads = (phases.reads_per_get(), phases.reads_per_miss());
        Ok(Some(Executed { writes, second_half, bytes_per_item, reads }))
    }

    fn executed_chained(&self, model: &PlanModel, updates: u32) -> Result<Executed, ModelError> {
        let mut phases = ChainedPhases::new(model)?;
        let mut writes = phases.load();
        for _ in 0..updates {
            writes = phases.update(self.keys.keys())?;
        }
        // Collection appends to the log, and the engine counts both together.
        let writes = vec![Component::new("log", writes.iter().map(|component| component.amount).sum())];
        let (second_half, bytes_per_item) =
            (phases.bytes_per_item(model.rules.frozen_logs), phases.bytes_per_item(0.0));
        Ok(Executed { writes, second_half, bytes_per_item, reads: phases.reads() })
    }

    /// Whether a phase that overwrites as many items as there are is still affected by the load: if young levels hold a
    /// small share of the items above one run, the mean over all time is reached within a fifth of the phase.
    fn remembers_load(&self) -> bool {
        match &self.plan {
            Plan::Levels(LevelsPlan { levels, .. }) => {
                levels.len() > 2
                    || levels[0].growth.items_max(1.0).is_infinite()
                    || matches!(levels[levels.len() - 1].growth, Growth::Tiering { .. })
            }
            // Nothing is collected until there is garbage.
            Plan::Chained(_) => true,
        }
    }

    fn cost(&self, state: State, is_busy: bool) -> Result<PlanCost, ModelError> {
        let workload = if state == State::Loaded {
            Workload::load(self.keys.keys(), self.item)?
        } else {
            Workload::updates(self.keys.clone(), self.item)
        };
        let workload = Workload { expected_keys: self.expected_keys, ..workload };
        let rules = if is_busy { Rules::engine_at_full_speed() } else { Rules::engine() };
        self.model(workload, rules).cost()
    }
}

/// Written bytes as the metrics of a phase: in total, and by log and level.
fn named_writes(written: &[Component]) -> Vec<(String, f64)> {
    let all = written.iter().map(|component| component.amount).sum();
    let of = |component: &Component| {
        (format!("{}_write_amplification", component.name.replace(' ', "_")), component.amount)
    };
    let parts = written.iter().filter(|component| component.amount > 0.0).map(of);
    std::iter::once(("write_amplification".to_owned(), all)).chain(parts).collect()
}

/// The predictions in one line for people. Returns an empty string without predictions.
pub fn announced(phase: Phase, predicted: &Map<String, Value>) -> String {
    let shown =
        predicted.iter().map(|(name, value)| format!("{name} {:.4}", value.as_f64().unwrap_or(f64::NAN)));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() {
        String::new()
    } else {
        format!("{} predicted: {}\n", phase.name(), shown.join(", "))
    }
}

fn refused(error: ModelError) -> BenchError {
    BenchError::Usage(error.to_string())
}
