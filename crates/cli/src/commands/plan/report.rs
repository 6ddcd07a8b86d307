//! The content of a result, shared by text, JSON and page.

use std::collections::BTreeSet;

use alluvium_base::units::format_bytes;
use alluvium_model::models::{Component, Wear};
use alluvium_model::plan_model::PlanCost;
use alluvium_model::planner::{Candidate, Demand, Planned};
use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Maximum points of a frontier that are shown: one of each group of close ones.
const POINTS_MAX: usize = 400;

/// A result together with its demand.
pub struct Report<'a> {
    pub demand: &'a Demand,
    pub planned: &'a Planned,
    pub recommended: &'a Candidate,
    /// The cost of the recommended plan, by source.
    pub cost: PlanCost,
    /// Years until the device is worn out.
    pub lifetime_years: f64,
}

impl<'a> Report<'a> {
    pub fn new(
        demand: &'a Demand,
        planned: &'a Planned,
        recommended: &'a Candidate,
        wear: &Wear,
    ) -> Result<Self, Failure> {
        let cost = demand.cost_of(recommended)?;
        let lifetime_years = cost.cost.device_lifetime_years(wear);
        Ok(Self { demand, planned, recommended, cost, lifetime_years })
    }

    /// Live items.
    pub fn items(&self) -> f64 {
        self.demand.workload.live_keys()
    }

    /// Number and size of the items.
    pub fn subject(&self) -> String {
        let workload = &self.demand.workload;
        format!(
            "{:.3e} items of {:.0}+{:.0} bytes",
            workload.keys.keys(),
            workload.item.key_bytes,
            workload.item.value_bytes
        )
    }

    /// The figures that come first, each with its name.
    pub fn headline(&self) -> [(String, String); 6] {
        let figures = &self.recommended.figures;
        let memory = format_bytes((figures.bytes_per_item * self.items()) as u64);
        [
            (format!("{:.2}", figures.write_amplification), "bytes written per byte put".to_owned()),
            (format!("{:.4}", figures.reads_per_get), "device reads per present key".to_owned()),
            (format!("{:.4}", figures.reads_per_miss), "device reads per absent key".to_owned()),
            (format!("{:.3} B", figures.bytes_per_item), format!("memory per item, {memory} in all")),
            (format!("{:.3}", figures.space_amplification), "device bytes per live byte".to_owned()),
            (format!("{:.1}", self.lifetime_years), "years until the device is worn".to_owned()),
        ]
    }

    /// The frontiers of all plans and of the executable ones, thinned out, including the recommended plan.
    pub fn points(&self) -> Vec<&'a Candidate> {
        let all = self.planned.frontier.iter().filter(|candidate| !candidate.is_executable);
        let mut points = vec![self.recommended];
        points.extend(thinned(&self.planned.executable_frontier.iter().collect::<Vec<_>>()));
        points.extend(thinned(&all.collect::<Vec<_>>()));
        points
    }

    /// One object with everything.
    pub fn json(&self) -> Value {
        let workload = &self.demand.workload;
        let limits = &self.demand.limits;
        let mix = &self.demand.mix;
        let list = |candidates: &[Candidate]| -> Vec<Value> {
            candidates.iter().map(|candidate| self.candidate(candidate)).collect()
        };
        let mut recommended = self.candidate(self.recommended);
        recommended["write_amplification_by_source"] = components(&self.cost.cost.writes);
        recommended["bytes_per_item_by_kind"] = components(&self.cost.cost.memory);
        recommended["space_amplification_by_kind"] = components(&self.cost.cost.space);
        recommended["write_buffer_bytes"] = self.cost.write_buffer_bytes.into();
        recommended["device_lifetime_years"] = self.lifetime_years.into();
        let named = self.planned.named.iter().map(|named| {
            let mut object = self.candidate(&named.candidate);
            object["name"] = named.name.into();
            object["keeps_limits"] = named.keeps_limits.into();
            object
        });
        json!({
            "demand": {
                "items": workload.keys.keys(),
                "key_bytes": workload.item.key_bytes,
                "value_bytes": workload.item.value_bytes,
                "deviation_bytes": workload.item.deviation_bytes,
                "fresh_share": workload.fresh_share,
                "mix": {"put": mix.put, "get": mix.get, "miss": mix.miss, "delete": mix.delete},
                "memory_bytes_max": limits.memory_bytes,
                "write_amplification_max": limits.write_amplification,
                "reads_per_lookup_max": limits.reads_per_lookup,
                "device": self.demand.device,
            },
            "recommended": recommended,
            "best": self.planned.best.as_ref().map(|best| self.candidate(best)),
            "runners_up": list(&self.planned.runners_up),
            "named": named.collect::<Vec<_>>(),
            "plans": self.planned.plans,
            "frontier_plans": self.planned.frontier.len(),
            "frontier": self.points().into_iter().map(|point| self.candidate(point)).collect::<Vec<_>>(),
            "explanation": self.planned.explanation,
        })
    }

    fn candidate(&self, candidate: &Candidate) -> Value {
        let figures = &candidate.figures;
        json!({
            "plan": candidate.plan,
            "description": candidate.plan.to_string(),
            "executable": candidate.is_executable,
            "degraded": candidate.is_degraded(),
            "write_amplification": figures.write_amplification,
            "reads_per_lookup": figures.reads_per_lookup,
            "reads_per_get": figures.reads_per_get,
            "reads_per_miss": figures.reads_per_miss,
            "bytes_per_item": figures.bytes_per_item,
            "memory_bytes": figures.bytes_per_item * self.items(),
            "space_amplification": figures.space_amplification,
            "device_us_per_operation": figures.score_us(self.demand),
        })
    }
}

fn components(components: &[Component]) -> Value {
    let named = components.iter().map(|part| (part.name.clone(), Value::from(part.amount)));
    Value::Object(named.collect::<Map<_, _>>())
}

/// One candidate per cell of a grid over the logarithms of the costs, the grid as fine as the number allows.
fn thinned<'a>(candidates: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut cells_per_doubling = 64.0;
    loop {
        let mut seen = BTreeSet::new();
        let cell = |figure: f64| ((figure + 1e-3).log2() * cells_per_doubling).floor() as i64;
        let kept: Vec<&Candidate> = candidates
            .iter()
            .copied()
            .filter(|candidate| seen.insert(candidate.figures.axes().map(cell)))
            .collect();
        if kept.len() <= POINTS_MAX {
            return kept;
        }
        cells_per_doubling /= 1.5;
    }
}
