//! Makes a new plan when data have outgrown one that was made for fewer items ([decision
//! 0023](../../../../docs/decisions/0023-a-change-of-plan-moves-no-data.md)).

use std::sync::Arc;

use alluvium_model::LevelsPlan;
use alluvium_model::ModelError;
use alluvium_model::planner::{Candidate, Demand, Space, plan_executable};

use crate::core::{KeyspaceShared, PlanDecision, Shared};
use crate::device;
use crate::error::Result;
use crate::level::Version;
use crate::manifest::PlanSource;
use crate::options::Settings;
use crate::workload::Workload;

/// A new plan is made when there are this many times the items for which the plan was made.
const OUTGROWN: f64 = 1.5;
/// The new plan is made for this many times the items present.
const AHEAD: f64 = 2.0;
/// Keyspaces with fewer items keep their first plan: any plan is good enough for them.
const ITEMS_MIN: u64 = 100_000;
/// Number of decisions that are remembered.
const DECISIONS_MAX: usize = 32;

/// What the planner gets to know about a keyspace.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    items: u64,
    key_bytes: f64,
    value_bytes: f64,
}

impl Measured {
    /// The mean is taken over the items of all tables, obsolete versions and tombstones included.
    fn of(version: &Version) -> Self {
        let mut sums = (0, 0, 0);
        for section in version.body.sections() {
            sums.0 += section.item_count();
            sums.1 += section.key_bytes();
            sums.2 += section.value_bytes();
        }
        let mean = |bytes: u64| bytes as f64 / (sums.0 as f64).max(1.0);
        let items = version.items();
        Self { items, key_bytes: mean(sums.1).max(1.0), value_bytes: mean(sums.2) }
    }
}

/// Whether the best plan should replace the present one, and why.
///
/// A plan that cannot keep the promised memory limit is replaced if another one can. Otherwise the change must pay off:
/// what operations save until the number of items has doubled, half of them puts, must exceed the cost of rewriting
/// every item once.
fn judge(present: &Candidate, best: &Candidate, demand: &Demand) -> (bool, String) {
    if present.plan == best.plan {
        return (false, "the plan is still the best one".to_owned());
    }
    let live = demand.workload.live_keys();
    let keeps = |candidate: &Candidate| candidate.figures.keeps(&demand.limits, live);
    if keeps(best) && !keeps(present) {
        return (true, "the plan would need more memory than intended for this number of items".to_owned());
    }
    let saved_us = present.figures.score_us(demand) - best.figures.score_us(demand);
    let put_share = 1.0 - demand.mix.lookup_share();
    let saved_per_item_us = saved_us / put_share.max(1e-9);
    let move_us = 1e6 * demand.workload.written_bytes() / demand.device.write_bytes_per_s;
    let sums = format!(
        "until there are twice as many items it saves {saved_per_item_us:.3} us of the device an item, and moving one \
         costs {move_us:.3} us"
    );
    match keeps(best) && saved_per_item_us > move_us {
        true => (true, format!("the change pays: {sums}")),
        false => (false, format!("the change does not pay: {sums}")),
    }
}

/// Whether the data of a keyspace have outgrown its plan.
pub(crate) fn is_outgrown(shared: &Shared) -> bool {
    outgrown(shared).is_some()
}

fn outgrown(shared: &Shared) -> Option<Arc<KeyspaceShared>> {
    let is_outgrown = |keyspace: &Arc<KeyspaceShared>| {
        let version = keyspace.version.load();
        let state = version.body.plan_state();
        state.source == PlanSource::Auto && !state.is_moving() && {
            let items = version.items();
            items >= ITEMS_MIN && items as f64 > state.items_planned as f64 * OUTGROWN
        }
    };
    shared.all_keyspaces().into_iter().find(is_outgrown)
}

/// Makes a new plan for one keyspace whose data have outgrown its plan, if there is one; returns whether there was.
/// This takes some tenths of a second of one processor, once each time that the data have grown by half.
pub(crate) fn replan(shared: &Shared) -> Result<bool> {
    let Some(keyspace) = outgrown(shared) else { return Ok(false) };
    let state = keyspace.plan_state();
    let measured = Measured::of(&keyspace.version.load());
    let items_planned = (measured.items as f64 * AHEAD) as u64;
    let mut decision = PlanDecision {
        keyspace: keyspace.name.clone(),
        at_ms: shared.now_ms(),
        items: measured.items,
        item_bytes: measured.key_bytes + measured.value_bytes,
        items_planned,
        from: state.plan.to_string(),
        ..PlanDecision::default()
    };
    // Damaged figures were reported when the database was opened or created; they are no reason to fail here.
    let device = device::read(&*shared.storage).ok().flatten().unwrap_or_default();
    let compared = compare(&state.plan, measured, items_planned, &shared.settings, device);
    let plan = match compared {
        Ok((present, best, demand)) => {
            (decision.is_changed, decision.reason) = judge(&present, &best, &demand);
            decision.operation_us = (present.figures.score_us(&demand), best.figures.score_us(&demand));
            decision.memory_bytes_per_item = (present.figures.bytes_per_item, best.figures.bytes_per_item);
            decision.best = Some(best.plan.to_string());
            if decision.is_changed { best.plan.try_into()? } else { state.plan.clone() }
        }
        // If no plan can be made, the keyspace keeps its plan.
        Err(error) => {
            decision.reason = error.to_string();
            state.plan.clone()
        }
    };
    match shared.set_plan_after(&keyspace, Some(&state), &plan, PlanSource::Auto, items_planned) {
        Ok(true) => {}
        Ok(false) | Err(crate::Error::KeyspaceDropped { .. }) => return Ok(true),
        Err(error) => return Err(error),
    }
    let mut decisions = shared.plan_decisions.lock().expect("no panic while held");
    if decisions.len() == DECISIONS_MAX {
        decisions.remove(0);
    }
    decisions.push(decision);
    Ok(true)
}

/// The present plan and the best one, with their costs for this number of such items.
fn compare(
    plan: &LevelsPlan,
    measured: Measured,
    items: u64,
    settings: &Settings,
    device: device::DeviceFigures,
) -> std::result::Result<(Candidate, Candidate, Demand), ModelError> {
    let Measured { key_bytes, value_bytes, .. } = measured;
    let workload = Workload { key_bytes, value_bytes, ..settings.workload };
    let demand = workload.demand(items, settings.index_bytes_per_item, device)?;
    let present = demand.candidate(plan.clone().into())?;
    let best = plan_executable(&demand, &Space::default())?;
    Ok((present, best, demand))
}

#[cfg(test)]
mod tests {
    use alluvium_model::Plan;
    use alluvium_model::planner::DeviceFigures;

    use super::*;

    fn settings() -> Settings {
        crate::Db::builder("").settings
    }

    fn compared(plan: &LevelsPlan, items: u64, value_bytes: f64) -> (Candidate, Candidate, Demand) {
        let measured = Measured { items, key_bytes: 16.0, value_bytes };
        compare(plan, measured, items, &settings(), DeviceFigures::default()).unwrap()
    }

    #[test]
    fn what_was_decided_is_decided_so_again() {
        for items in [200_000, 20_000_000, 2_000_000_000] {
            for plan in [Plan::silt(), Plan::tiered(), Plan::leveled(), Plan::silt_deep()] {
                let (present, best, demand) = compared(plan.as_levels().unwrap(), items, 100.0);
                let (is_changed, reason) = judge(&present, &best, &demand);
                assert!(!reason.is_empty());
                let kept = if is_changed { &best } else { &present };
                let (kept, best, demand) = compared(kept.plan.as_levels().unwrap(), items, 100.0);
                let (again, reason) = judge(&kept, &best, &demand);
                assert!(!again, "{items} items, {}: {reason}", kept.plan);
            }
        }
    }

    #[test]
    fn a_change_has_to_pay() {
        let (mut present, best, demand) = compared(Plan::leveled().as_levels().unwrap(), 20_000_000, 100.0);
        assert!(best.figures.keeps(&demand.limits, 20e6));
        // As if it kept the limits, and wrote a little more than the best.
        present.figures = best.figures;
        present.figures.write_amplification += 0.5;
        assert!(!judge(&present, &best, &demand).0);
        present.figures.write_amplification += 1.0;
        assert!(judge(&present, &best, &demand).0);
        present.figures = best.figures;
        present.figures.bytes_per_item = 10.0;
        let (is_changed, reason) = judge(&present, &best, &demand);
        assert!(is_changed && reason.contains("memory"), "{reason}");
    }
}
