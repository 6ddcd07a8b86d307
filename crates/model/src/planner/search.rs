//! The exact frontier of all plans of a space.
//!
//! How levels fill and empty is computed once for each sequence of growths. Tables, filters and indexes are then chosen
//! level by level. Costs are sums over levels, so a choice that is beaten in writes, reads and memory up to some level
//! stays beaten; only the others are continued. SlimDB (§4) searches heuristically.

use std::rc::Rc;

use super::demand::Demand;
use super::figures::{Candidate, Figures};
use super::frontier::undominated;
use super::space::Space;
use crate::error::ModelError;
use crate::plan::{Growth, LevelSpec, LevelsPlan, Plan};
use crate::plan_model::{Amounts, Parts, PlanModel, Workload};

/// Which plans of the space count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All legal plans.
    Legal,
    /// Those that the engine executes.
    Executable,
}

/// What a search found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Plans that no other plan beats, by rising memory.
    pub frontier: Vec<Candidate>,
    /// Number of plans compared, including those dropped before their last level.
    pub plans: f64,
}

/// Layouts of the first levels, with what they cost so far.
#[derive(Clone, Debug)]
struct Partial {
    levels: Vec<LevelSpec>,
    amounts: Amounts,
}

/// Searches the space. Takes some thousand evaluations of a stack of levels: about a second for uniform keys, several
/// seconds for a Zipf popularity, and less if only executable plans are asked for.
///
/// With `only_best`, looks only for the best plan within the demand's limits instead of the frontier. A partial plan is
/// dropped if its cost plus the minimum cost of the levels still to come exceeds the limits or the cost of a plan
/// already found.
pub(super) fn search(
    demand: &Demand,
    space: &Space,
    scope: Scope,
    only_best: bool,
) -> Result<Found, ModelError> {
    let mut found = Found::default();
    let mut all: Vec<(Plan, Amounts)> = Vec::new();
    let mut layouts = Layouts::default();
    let mut ended: Vec<Vec<Growth>> = Vec::new();
    let live = demand.workload.live_keys();
    let mut best_us = f64::INFINITY;
    for growths in space.growths() {
        let options: Vec<_> = growths
            .iter()
            .enumerate()
            .map(|(number, &growth)| layouts.of_level(space, scope, growth, number, growths.len()))
            .collect();
        if options.iter().any(|options| options.is_empty()) {
            continue;
        }
        found.plans += options.iter().map(|options| options.len() as f64).product::<f64>();
        // If the data end in an earlier level, this plan equals one with fewer levels, which is considered separately.
        if ended.iter().any(|ended| growths.len() > ended.len() && growths.starts_with(ended)) {
            continue;
        }
        let levels = options.iter().map(|options| options[0]).collect();
        let plan = Plan::Levels(LevelsPlan { sharding: space.sharding, log: space.log, levels });
        let model = model(demand, plan);
        let parts = Parts::new(&model)?;
        if parts.levels() < growths.len() {
            ended.push(growths[..parts.levels()].to_vec());
            continue;
        }
        let keeps = |amounts: &Amounts| {
            let figures = Figures::new(amounts, demand);
            // Sums in another order may differ in their last bits.
            let score_max = best_us * (1.0 + 1e-9);
            !only_best || (figures.keeps(&demand.limits, live) && figures.score_us(demand) <= score_max)
        };
        let partials = best_layouts(&parts, &options, demand, &keeps);
        let scores = partials.iter().map(|partial| Figures::new(&partial.amounts, demand).score_us(demand));
        best_us = scores.fold(best_us, f64::min);
        all.extend(partials.into_iter().map(|Partial { levels, amounts }| {
            (Plan::Levels(LevelsPlan { sharding: space.sharding, log: space.log, levels }), amounts)
        }));
    }
    let counts = |plan: &Plan| scope == Scope::Legal || plan.is_executable();
    for plan in space.chains().map(Plan::Chained).filter(counts) {
        found.plans += 1.0;
        all.push((plan.clone(), Amounts::of_cost(&model(demand, plan).cost()?)));
    }
    let frontier = frontier(all, demand);
    let candidates =
        frontier.into_iter().map(|(plan, amounts)| Candidate::new(plan, Figures::new(&amounts, demand)));
    found.frontier = candidates.collect();
    Ok(found)
}

/// The plans that no other beats, by rising memory. Plans whose puts read beat none whose puts don't.
fn frontier(all: Vec<(Plan, Amounts)>, demand: &Demand) -> Vec<(Plan, Amounts)> {
    let axes = |(_, amounts): &(Plan, Amounts)| Figures::new(amounts, demand).axes();
    let reads = |(_, amounts): &(Plan, Amounts)| amounts.reads_per_put > 0.0;
    let (reading, others): (Vec<_>, Vec<_>) = all.into_iter().partition(reads);
    let mut frontier = undominated(others, axes);
    let together = undominated(frontier.iter().cloned().chain(reading), axes);
    frontier.extend(together.into_iter().filter(reads));
    frontier.sort_by(|left, right| axes(left)[0].total_cmp(&axes(right)[0]));
    frontier
}

/// A level's growth, whether it is the youngest, and whether it is the only one.
type Position = (Growth, bool, bool);

/// The layouts that levels may have; the space is asked once for each.
#[derive(Debug, Default)]
struct Layouts {
    known: Vec<(Position, Rc<[LevelSpec]>)>,
}

impl Layouts {
    fn of_level(
        &mut self,
        space: &Space,
        scope: Scope,
        growth: Growth,
        number: usize,
        levels: usize,
    ) -> Rc<[LevelSpec]> {
        let key = (growth, number == 0, levels == 1);
        if let Some((_, layouts)) = self.known.iter().find(|(known, _)| *known == key) {
            return layouts.clone();
        }
        let mut layouts = space.layouts(growth);
        if scope == Scope::Executable {
            layouts.retain(|level| level.check_executable(number, levels).is_ok());
        }
        let layouts: Rc<[LevelSpec]> = layouts.into();
        self.known.push((key, layouts.clone()));
        layouts
    }
}

/// The undominated layouts whose cost plus the minimum cost of all further levels passes `keeps`.
fn best_layouts(
    parts: &Parts<'_>,
    options: &[Rc<[LevelSpec]>],
    demand: &Demand,
    keeps: &dyn Fn(&Amounts) -> bool,
) -> Vec<Partial> {
    let axes = |amounts: &Amounts| Figures::new(amounts, demand).axes();
    let priced = options.iter().enumerate().map(|(number, options)| {
        let priced = options.iter().map(|level| (*level, parts.level(number, level)));
        undominated(priced, |(_, amounts)| axes(amounts))
    });
    let priced: Vec<Vec<(LevelSpec, Amounts)>> = priced.collect();
    let mut rest = vec![Amounts::default()];
    for priced in priced.iter().rev() {
        let least = priced.iter().map(|(_, amounts)| *amounts).reduce(Amounts::least).unwrap_or_default();
        rest.push(least + rest[rest.len() - 1]);
    }
    let mut partials = vec![Partial { levels: Vec::new(), amounts: parts.log() }];
    partials.retain(|partial| keeps(&(partial.amounts + rest[priced.len()])));
    for (number, priced) in priced.iter().enumerate() {
        let rest = rest[options.len() - number - 1];
        let longer = partials.iter().enumerate().flat_map(|(young, partial)| {
            priced.iter().map(move |(level, amounts)| (young, *level, partial.amounts + *amounts))
        });
        let longer = longer.filter(|(_, _, amounts)| keeps(&(*amounts + rest)));
        // Only the levels of undominated choices are recorded: most choices are beaten.
        let kept = undominated(longer, |(_, _, amounts)| axes(amounts));
        let longer = kept.into_iter().map(|(young, level, amounts)| {
            let levels = [&partials[young].levels[..], &[level]].concat();
            Partial { levels, amounts }
        });
        partials = longer.collect();
    }
    partials
}

/// The model of a plan at the size of the store at the end.
pub(super) fn model(demand: &Demand, plan: Plan) -> PlanModel {
    let workload = Workload { start_keys: demand.workload.keys.keys(), ..demand.workload.clone() };
    PlanModel { plan, workload, rules: demand.rules, memory_limit_bytes: f64::INFINITY }
}
