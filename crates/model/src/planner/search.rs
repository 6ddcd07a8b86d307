//! The frontier of all plans of a space, exactly.
//!
//! How levels fill and empty is computed once for each sequence of growths. Tables, filters and indexes are then chosen
//! level by level: costs are sums over levels, so what is beaten in writes, reads and memory up to some level stays
//! beaten, and only what is not goes on. SlimDB (§4) searches heuristically.

use super::demand::{Demand, Limits};
use super::figures::{Candidate, Figures};
use super::frontier::undominated;
use super::space::Space;
use crate::error::ModelError;
use crate::plan::{Growth, LevelSpec, Plan};
use crate::plan_model::{Amounts, Parts, PlanModel, Workload};

/// Which plans of the space count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All that are legal.
    Legal,
    /// Those that the engine executes.
    Executable,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// What nothing beats, by rising memory.
    pub frontier: Vec<Candidate>,
    /// Plans that were compared, those that were beaten half-way included.
    pub plans: f64,
}

/// Layouts of the first levels, with what they cost so far.
#[derive(Clone, Debug)]
struct Partial {
    levels: Vec<LevelSpec>,
    amounts: Amounts,
}

/// Searches the space. Some hundred evaluations of a stack of levels: a tenth of a second for uniform keys, a few
/// seconds for a Zipf popularity; a hundredth of that for executable plans.
///
/// With `limits`, what exceeds them up to some level goes no further: costs only grow with more levels. The frontier then
/// is that within the limits.
pub(super) fn search(
    demand: &Demand,
    space: &Space,
    scope: Scope,
    limits: Option<&Limits>,
) -> Result<Found, ModelError> {
    let mut found = Found::default();
    let mut all: Vec<(Plan, Amounts)> = Vec::new();
    for growths in space.growths() {
        let options = options(space, &growths, scope);
        if options.iter().any(Vec::is_empty) {
            continue;
        }
        found.plans += options.iter().map(|options| options.len() as f64).product::<f64>();
        let levels = options.iter().map(|options| options[0]).collect();
        let plan = Plan::Levels { sharding: space.sharding, log: space.log, levels };
        let model = model(demand, plan);
        let parts = Parts::new(&model)?;
        // Where the data end in an earlier level, the plan is that of fewer levels, which is looked at by itself.
        if parts.levels() < growths.len() {
            continue;
        }
        let partials = best_layouts(&parts, &options, demand, limits);
        all.extend(partials.into_iter().map(|Partial { levels, amounts }| {
            (Plan::Levels { sharding: space.sharding, log: space.log, levels }, amounts)
        }));
    }
    if scope == Scope::Legal {
        for spec in space.chains() {
            let plan = Plan::Chained(spec);
            found.plans += 1.0;
            all.push((plan.clone(), Amounts::of_cost(&model(demand, plan).cost()?.cost)));
        }
    }
    let frontier = undominated(all, |(_, amounts)| Figures::new(amounts, demand).axes());
    let candidates =
        frontier.into_iter().map(|(plan, amounts)| Candidate::new(plan, Figures::new(&amounts, demand)));
    found.frontier = candidates.collect();
    Ok(found)
}

/// What each level may be.
fn options(space: &Space, growths: &[Growth], scope: Scope) -> Vec<Vec<LevelSpec>> {
    let of_level = |(number, &growth): (usize, &Growth)| {
        let mut layouts = space.layouts(growth);
        if scope == Scope::Executable {
            layouts.retain(|level| level.check_executable(number, growths.len()).is_ok());
        }
        layouts
    };
    growths.iter().enumerate().map(of_level).collect()
}

fn best_layouts(
    parts: &Parts<'_>,
    options: &[Vec<LevelSpec>],
    demand: &Demand,
    limits: Option<&Limits>,
) -> Vec<Partial> {
    let live = demand.workload.live_keys();
    let keeps =
        |amounts: &Amounts| limits.is_none_or(|limits| Figures::new(amounts, demand).keeps(limits, live));
    let axes = |amounts: &Amounts| Figures::new(amounts, demand).axes();
    let mut partials = vec![Partial { levels: Vec::new(), amounts: parts.log() }];
    for (number, options) in options.iter().enumerate() {
        let priced = options.iter().map(|level| (*level, parts.level(number, level)));
        let priced: Vec<(LevelSpec, Amounts)> = undominated(priced, |(_, amounts)| axes(amounts));
        let longer = partials.iter().enumerate().flat_map(|(young, partial)| {
            priced.iter().map(move |(level, amounts)| (young, *level, partial.amounts + *amounts))
        });
        let longer = longer.filter(|(_, _, amounts)| keeps(amounts));
        // Levels are written down for what is left only: most choices are beaten.
        let kept = undominated(longer, |(_, _, amounts)| axes(amounts));
        let longer = kept.into_iter().map(|(young, level, amounts)| {
            let levels = [&partials[young].levels[..], &[level]].concat();
            Partial { levels, amounts }
        });
        partials = longer.collect();
    }
    partials
}

/// The model of a plan at the size with which the store ends.
pub(super) fn model(demand: &Demand, plan: Plan) -> PlanModel {
    let workload = Workload { start_keys: demand.workload.keys.keys(), ..demand.workload.clone() };
    PlanModel { plan, workload, rules: demand.rules, memory_limit_bytes: f64::INFINITY }
}
