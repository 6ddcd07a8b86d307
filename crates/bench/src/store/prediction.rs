//! What the model says that a phase will cost, from the options alone, before the phase runs.
//!
//! The model has an opinion where its assumptions hold: writes while loading and while overwriting uniformly, at full
//! speed; memory in the second half of a load; reads, memory and space once merges have caught up. It has none where
//! gets and merges read side by side, or where everything was merged by hand.

use alluvium_model::models::Component;
use alluvium_model::plan_model::{ItemSize, Phases, PlanCost, PlanModel, Rules, Workload, young_writes};
use alluvium_model::{Growth, KeyDistribution, LevelSpec, ModelError, Plan};
use serde_json::{Map, Value};

use super::config::StoreOptions;
use super::phase::Phase;
use crate::error::BenchError;

/// What was done to the store so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Loaded, nothing overwritten.
    Loaded,
    /// Uniformly overwritten about once or more.
    Updated,
    /// Something that the model does not know.
    Other,
}

/// Predicts phase after phase.
#[derive(Debug)]
pub struct Predictor {
    plan: Plan,
    keys: KeyDistribution,
    item: ItemSize,
    state: State,
    /// Levels whose tables lie in a directory of their own.
    young_levels: Option<usize>,
}

impl Predictor {
    /// Before the first phase.
    pub fn new(options: &StoreOptions) -> Result<Self, BenchError> {
        let item = ItemSize {
            key_bytes: options.key_size as f64,
            value_bytes: options.value_size as f64,
            deviation_bytes: 0.0,
        };
        Ok(Self {
            plan: options.plan()?,
            keys: KeyDistribution::uniform(options.items as f64).map_err(refused)?,
            item,
            // A database that was kept was loaded and not overwritten.
            state: State::Loaded,
            young_levels: options.young_dir.is_some().then_some(options.young_levels),
        })
    }

    /// The metrics that `phase` will measure, by their names, as far as the model has an opinion; then the phase counts
    /// as done.
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
        let writes = match phase {
            Phase::Load if self.remembers_load() => Some(self.writes_of_load()?),
            Phase::Update if self.state != State::Other && self.remembers_load() => {
                Some(self.writes_of_update()?)
            }
            Phase::Load => Some(self.cost(State::Loaded, true)?.cost.writes),
            Phase::Update => Some(self.cost(State::Updated, true)?.cost.writes),
            _ => None,
        };
        let mut figures = writes.as_ref().map_or_else(Vec::new, |writes| named_writes(writes));
        if let Some((writes, levels)) = writes.as_ref().zip(self.young_levels) {
            let young = young_writes(writes, levels);
            figures.push(("young_directory_write_amplification".to_owned(), young));
        }
        figures.extend(self.others(phase)?.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(figures)
    }

    /// What is predicted besides writes.
    fn others(&self, phase: Phase) -> Result<Vec<(&'static str, f64)>, ModelError> {
        Ok(match phase {
            Phase::Load => {
                let (busy, settled) = (self.cost(State::Loaded, true)?, self.cost(State::Loaded, false)?);
                vec![
                    ("index_bytes_per_item", settled.cost.bytes_per_item()),
                    ("index_bytes_per_item_second_half", busy.bytes_per_item_second_half),
                    ("space_amplification", settled.cost.space_amplification()),
                ]
            }
            // Levels that nothing but their runs bounds take many rounds of updates to fill.
            Phase::Update if !self.collects_everywhere() => {
                let busy = self.cost(State::Updated, true)?;
                vec![("index_bytes_per_item_second_half", busy.cost.bytes_per_item())]
            }
            Phase::Get | Phase::Stream | Phase::All | Phase::Miss
                if self.state == State::Updated && self.collects_everywhere() =>
            {
                Vec::new()
            }
            Phase::Get | Phase::Stream | Phase::All if self.state != State::Other => {
                let cost = self.cost(self.state, false)?.cost;
                vec![
                    ("device_reads_per_get", cost.reads_per_get),
                    ("index_bytes_per_item", cost.bytes_per_item()),
                ]
            }
            Phase::Miss if self.state != State::Other => {
                let cost = self.cost(self.state, false)?.cost;
                vec![
                    ("device_reads_per_get", cost.reads_per_miss),
                    ("index_bytes_per_item", cost.bytes_per_item()),
                ]
            }
            _ => Vec::new(),
        })
    }

    /// Whether a phase that overwrites as many items as there are still sees what the load left: where young levels
    /// hold a small share of the items above one run, the mean over all time is reached within a fifth of the phase.
    fn remembers_load(&self) -> bool {
        match &self.plan {
            Plan::Levels { levels, .. } => {
                levels.len() > 2
                    || levels[0].growth.items_max(1.0).is_infinite()
                    || matches!(levels[levels.len() - 1].growth, Growth::Tiering { .. })
            }
            Plan::Chained(_) => false,
        }
    }

    /// Whether there are several levels of runs over a last one.
    fn collects_everywhere(&self) -> bool {
        let tiers = |level: &LevelSpec| matches!(level.growth, Growth::Tiering { .. });
        matches!(&self.plan, Plan::Levels { levels, .. } if levels.len() > 2 && levels.iter().all(tiers))
    }

    /// Bytes written for each byte of the user's while every item is put once.
    fn writes_of_load(&self) -> Result<Vec<Component>, ModelError> {
        Phases::new(&self.at_full_speed()?)?.load()
    }

    /// Bytes written for each byte of the user's while every item is overwritten about once.
    fn writes_of_update(&self) -> Result<Vec<Component>, ModelError> {
        let model = self.at_full_speed()?;
        let mut phases = Phases::new(&model)?;
        phases.load()?;
        if self.state == State::Updated {
            phases.update(self.keys.keys())?;
        }
        phases.update(self.keys.keys())
    }

    fn at_full_speed(&self) -> Result<PlanModel, ModelError> {
        let workload = Workload::load(self.keys.keys(), self.item)?;
        let rules = Rules::engine_at_full_speed();
        Ok(PlanModel { rules, ..PlanModel::new(self.plan.clone(), workload) })
    }

    fn cost(&self, state: State, is_busy: bool) -> Result<PlanCost, ModelError> {
        let workload = if state == State::Loaded {
            Workload::load(self.keys.keys(), self.item)?
        } else {
            Workload { expected_keys: self.keys.keys(), ..Workload::updates(self.keys.clone(), self.item) }
        };
        let rules = if is_busy { Rules::engine_at_full_speed() } else { Rules::engine() };
        PlanModel { rules, ..PlanModel::new(self.plan.clone(), workload) }.cost()
    }
}

/// Written bytes as the metrics of a phase: all, and by log and level.
fn named_writes(written: &[Component]) -> Vec<(String, f64)> {
    let all = written.iter().map(|component| component.amount).sum();
    let of = |component: &Component| {
        (format!("{}_write_amplification", component.name.replace(' ', "_")), component.amount)
    };
    let parts = written.iter().filter(|component| component.amount > 0.0).map(of);
    std::iter::once(("write_amplification".to_owned(), all)).chain(parts).collect()
}

/// What is to be measured, in a line for people; empty where there is no opinion.
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
