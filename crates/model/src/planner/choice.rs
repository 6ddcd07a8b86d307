//! [`plan`]: the choice among the plans of a space.

use super::demand::{Demand, Limits};
use super::explain::explain;
use super::figures::{Candidate, Figures};
use super::search::{Scope, model, search};
use super::space::Space;
use crate::error::ModelError;
use crate::plan::{Growth, LevelsPlan, Plan};
use crate::plan_model::{Amounts, PlanCost, PlanModel};

/// Maximum number of plans, besides the executable ones, that are tried with a part of their indexes dropped.
const DEGRADED_PLANS_MAX: usize = 1_000;
/// Maximum number of runners-up, plans with other growths.
const RUNNERS_UP_MAX: usize = 5;

/// A named plan, for comparison with the chosen one.
#[derive(Clone, Debug)]
pub struct NamedCandidate {
    /// Its name in [`Plan::NAMES`].
    pub name: &'static str,
    /// What it costs under the demand.
    pub candidate: Candidate,
    /// Whether it is within the limits.
    pub keeps_limits: bool,
}

/// The planner's result for a demand.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The best plan, or `None` if no plan is within the limits.
    pub best: Option<Candidate>,
    /// The best plan that the engine executes, or `None` if no such plan is within the limits.
    pub executable: Option<Candidate>,
    /// If no plan is within the limits with all its filters and indexes in memory: the best one that is within them
    /// when a part of these is read from flash ([`Candidate::memory_limit_bytes`]). If only chained plans of those that
    /// the engine executes are within the limits, the best such plan of levels, unless it takes more time than they do:
    /// little memory alone is no reason for long chains.
    pub degraded: Option<Candidate>,
    /// The next best plans, each with growths that differ from those before.
    pub runners_up: Vec<Candidate>,
    /// Plans that no other plan beats in writes, reads (of gets and of puts) and memory, regardless of the limits, by
    /// rising memory.
    pub frontier: Vec<Candidate>,
    /// Executable plans that no other executable plan beats.
    pub executable_frontier: Vec<Candidate>,
    /// The papers' plans, unchanged.
    pub named: Vec<NamedCandidate>,
    /// Number of plans compared.
    pub plans: f64,
    /// The reasons for the choice, one sentence each.
    pub explanation: Vec<String>,
}

impl Planned {
    /// The plan to use: the best executable one; if none is within the limits, the best one; if there is none either,
    /// or if that takes less time, the best one with less in memory.
    pub fn recommended(&self) -> Option<&Candidate> {
        self.degraded.as_ref().or(self.executable.as_ref()).or(self.best.as_ref())
    }
}

/// Looks for the best plans of `space` under `demand`.
///
/// The choice is exact within the space: it is the one that comparing all plans one by one gives. Takes a few tenths of
/// a second for uniform keys, a few seconds for a Zipf popularity.
///
/// # Errors
/// Any error that the demand's parts return. If no plan is within the limits, that is a result, not an error.
pub fn plan(demand: &Demand, space: &Space) -> Result<Planned, ModelError> {
    demand.validate()?;
    let legal = search(demand, space, Scope::Legal, false)?;
    let executable = search(demand, space, Scope::Executable, false)?;
    let best = best(&legal.frontier, demand, &demand.limits).cloned();
    let best_executable = self::best(&executable.frontier, demand, &demand.limits).cloned();
    let of_levels = |frontier: &[Candidate]| -> Vec<Candidate> {
        frontier.iter().filter(|candidate| !candidate.is_chained()).cloned().collect()
    };
    let degraded = match &best_executable {
        None if best.is_none() => degraded(demand, &executable.frontier, &legal.frontier)?,
        Some(chained) if chained.is_chained() => {
            let levels = of_levels(&executable.frontier);
            match self::best(&levels, demand, &demand.limits) {
                Some(_) => None,
                None => degraded(demand, &levels, &[])?.filter(|levels| levels.is_better(chained, demand)),
            }
        }
        _ => None,
    };
    let mut planned = Planned {
        runners_up: runners_up(&legal.frontier, demand, best.as_ref()),
        degraded,
        best,
        executable: best_executable,
        frontier: legal.frontier,
        executable_frontier: executable.frontier,
        named: named(demand)?,
        plans: legal.plans,
        explanation: Vec::new(),
    };
    planned.explanation = explain(demand, &planned);
    Ok(planned)
}

/// The best plan of `space` under `demand` that the engine executes; if none is within the limits, the one of levels
/// that takes the least memory. Looks only at plans that may be the best.
///
/// A chained plan, with its several reads for a get, is never chosen only because it takes little memory: if no plan of
/// levels is within the limits, it must take less time than the one that takes the least memory, too.
///
/// # Errors
/// Any error that the demand's parts return, and an error for a space without executable plans.
pub fn plan_executable(demand: &Demand, space: &Space) -> Result<Candidate, ModelError> {
    demand.validate()?;
    let within = search(demand, space, Scope::Executable, true)?.frontier;
    let chosen = best(&within, demand, &demand.limits);
    let keeps_limits = |candidate: &&Candidate| {
        !candidate.is_chained() && candidate.figures.keeps(&demand.limits, demand.workload.live_keys())
    };
    let chosen = match chosen {
        Some(chosen) if !chosen.is_chained() || within.iter().any(|other| keeps_limits(&other)) => {
            Some(chosen.clone())
        }
        chained => {
            let all = search(demand, space, Scope::Executable, false)?.frontier;
            let least = all.iter().find(|candidate| !candidate.is_chained()).or(all.first());
            chained
                .filter(|chained| least.is_none_or(|least| chained.is_better(least, demand)))
                .or(least)
                .cloned()
        }
    };
    chosen.ok_or_else(|| ModelError::OutOfRange {
        name: "executable plans in the space",
        value: 0.0,
        expected: "there is one at least".to_owned(),
    })
}

impl Demand {
    /// What `plan` costs under this demand, source by source: the sums are the [`Figures`] of its [`Candidate`].
    pub fn cost(&self, plan: &Plan) -> Result<PlanCost, ModelError> {
        self.validate()?;
        model(self, plan.clone()).cost()
    }

    /// What the candidate costs when it keeps no more in memory than its memory limit.
    pub fn cost_of(&self, candidate: &Candidate) -> Result<PlanCost, ModelError> {
        self.validate()?;
        let memory_limit_bytes = candidate.memory_limit_bytes;
        PlanModel { memory_limit_bytes, ..model(self, candidate.plan.clone()) }.cost()
    }

    /// `plan` with its figures under this demand.
    pub fn candidate(&self, plan: Plan) -> Result<Candidate, ModelError> {
        let figures = Figures::new(&Amounts::of_cost(&self.cost(&plan)?), self);
        Ok(Candidate::new(plan, figures))
    }
}

/// The best of `candidates` within `limits`; among equal ones the one with less memory, then with fewer writes.
pub(super) fn best<'a>(
    candidates: impl IntoIterator<Item = &'a Candidate>,
    demand: &Demand,
    limits: &Limits,
) -> Option<&'a Candidate> {
    let live = demand.workload.live_keys();
    let kept = candidates.into_iter().filter(|candidate| candidate.figures.keeps(limits, live));
    kept.min_by(|left, right| {
        let score = |candidate: &Candidate| candidate.figures.score_us(demand);
        let axes = |candidate: &Candidate| candidate.figures.axes();
        let by = |axis: usize| axes(left)[axis].total_cmp(&axes(right)[axis]);
        score(left).total_cmp(&score(right)).then_with(|| by(0)).then_with(|| by(1)).then_with(|| by(2))
    })
}

/// The best plan with filters and indexes dropped until the rest fits in the allowed memory: among the executable
/// plans, or if that leaves none, among the plans that take the least memory.
fn degraded(
    demand: &Demand,
    executable: &[Candidate],
    legal: &[Candidate],
) -> Result<Option<Candidate>, ModelError> {
    let memory_limit_bytes = demand.limits.memory_bytes;
    if !memory_limit_bytes.is_finite() {
        return Ok(None);
    }
    for pool in [executable, &legal[..legal.len().min(DEGRADED_PLANS_MAX)]] {
        let mut within = Vec::new();
        for candidate in pool {
            let limited = Candidate { memory_limit_bytes, ..candidate.clone() };
            // A limit below the size of the log's index is an error of the model.
            if let Ok(cost) = demand.cost_of(&limited) {
                let figures = Figures::new(&Amounts::of_cost(&cost), demand);
                within.push(Candidate { figures, ..limited });
            }
        }
        if let Some(best) = best(&within, demand, &demand.limits) {
            return Ok(Some(best.clone()));
        }
    }
    Ok(None)
}

/// The best plan within the limits for each sequence of growths that no plan before it has. Growths that differ in
/// shares only count as one.
fn runners_up(frontier: &[Candidate], demand: &Demand, best: Option<&Candidate>) -> Vec<Candidate> {
    let live = demand.workload.live_keys();
    let mut kept: Vec<&Candidate> =
        frontier.iter().filter(|candidate| candidate.figures.keeps(&demand.limits, live)).collect();
    kept.sort_by(|left, right| left.figures.score_us(demand).total_cmp(&right.figures.score_us(demand)));
    let mut seen: Vec<Option<Vec<Growth>>> = best.into_iter().map(shape).collect();
    let mut next = Vec::new();
    for candidate in kept {
        let shape = shape(candidate);
        if next.len() < RUNNERS_UP_MAX && !seen.contains(&shape) {
            seen.push(shape);
            next.push(candidate.clone());
        }
    }
    next
}

/// Growths without shares; `None` for chains.
fn shape(candidate: &Candidate) -> Option<Vec<Growth>> {
    let Plan::Levels(LevelsPlan { levels, .. }) = &candidate.plan else { return None };
    let growths = levels.iter().map(|level| match level.growth {
        Growth::Tiering { runs_max, .. } => Growth::Tiering { runs_max, share: 0.0 },
        leveling @ Growth::Leveling { .. } => leveling,
    });
    Some(growths.collect())
}

fn named(demand: &Demand) -> Result<Vec<NamedCandidate>, ModelError> {
    let live = demand.workload.live_keys();
    let of_name = |name: &'static str| {
        let candidate = demand.candidate(Plan::named(name)?)?;
        let keeps_limits = candidate.figures.keeps(&demand.limits, live);
        Ok(NamedCandidate { name, candidate, keeps_limits })
    };
    Plan::NAMES.into_iter().map(of_name).collect()
}
