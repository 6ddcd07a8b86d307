//! Makes a new plan when data have outgrown one that was made for fewer items, or when gets ask for absent keys more or
//! less often ([decision 0023](../../../../docs/decisions/0023-a-change-of-plan-moves-no-data.md)).

use std::sync::Arc;

use alluvium_model::LevelsPlan;
use alluvium_model::ModelError;
use alluvium_model::planner::{Candidate, Demand, Space, plan_executable};

use crate::core::{KeyspaceShared, PlanDecision, Shared};
use crate::device;
use crate::error::Result;
use crate::level::Version;
use crate::manifest::PlanSource;
use crate::workload::Workload;

/// A new plan is made when there are this many times the items for which the plan was made.
const OUTGROWN: f64 = 1.5;
/// The new plan is made for this many times the items present.
const AHEAD: f64 = 2.0;
/// Keyspaces with fewer items keep their first plan: any plan is good enough for them.
const ITEMS_MIN: u64 = 100_000;
/// Number of decisions that are remembered.
const DECISIONS_MAX: usize = 32;
/// Bytes of memory per item with which a plan can have filters for all items.
const FILTERED_BYTES_PER_ITEM: f64 = 2.5;
/// Minimum reads for absent keys, per lookup, from which more memory is proposed.
const PROPOSAL_READS_MIN: f64 = 0.2;
/// Maximum share of an operation's time that a plan with more memory takes for it to be proposed.
const PROPOSAL_TIME_MAX: f64 = 0.8;

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

/// A keyspace that is to have a new plan.
struct Due {
    keyspace: Arc<KeyspaceShared>,
    /// Number of items for which the plan is made.
    items_planned: u64,
    /// What the plan is made for.
    workload: Workload,
}

/// Whether a keyspace is to have a new plan: its data have outgrown the present one, or it is asked for absent keys
/// more or less often.
pub(crate) fn replan_is_due(shared: &Shared) -> bool {
    due(shared).is_some()
}

fn due(shared: &Shared) -> Option<Due> {
    shared.all_keyspaces().into_iter().find_map(|keyspace| {
        let version = keyspace.version.load();
        let state = version.body.plan_state().clone();
        if state.source != PlanSource::Auto || state.is_moving() {
            return None;
        }
        let items = version.items();
        drop(version);
        if items < ITEMS_MIN {
            return None;
        }
        let lookups = &keyspace.table_lookups;
        let is_outgrown = items as f64 > state.items_planned as f64 * OUTGROWN;
        let changed = match shared.settings.workload {
            Some(_) => None,
            None => lookups.changed_absent_share(items),
        };
        if !is_outgrown && changed.is_none() {
            return None;
        }
        let absent_share = changed.unwrap_or(lookups.planned_absent_share());
        let workload = shared.settings.workload.unwrap_or(Workload::of_absent_share(absent_share));
        // Also after a change of the share: filters for the items present may fit where those for all expected do not.
        let items_planned = (items as f64 * AHEAD) as u64;
        Some(Due { keyspace, items_planned, workload })
    })
}

/// Makes a new plan for one keyspace that is to have one, if there is one; returns whether there was. This takes some
/// tenths of a second of one processor, once each time that the data have grown by half or that the share of absent
/// keys has changed by a fifth.
pub(crate) fn replan(shared: &Shared) -> Result<bool> {
    let Some(Due { keyspace, items_planned, workload }) = due(shared) else { return Ok(false) };
    let state = keyspace.plan_state();
    let measured = Measured::of(&keyspace.version.load());
    let absent_share = workload.absent_share();
    let mut decision = PlanDecision {
        keyspace: keyspace.name.clone(),
        at_ms: shared.now_ms(),
        items: measured.items,
        item_bytes: measured.key_bytes + measured.value_bytes,
        items_planned,
        absent_share,
        from: state.plan.to_string(),
        ..PlanDecision::default()
    };
    // Damaged figures were reported when the database was opened or created; they are no reason to fail here.
    let device = device::read(&*shared.storage).ok().flatten().unwrap_or_default();
    let asked = Asked {
        measured,
        items: items_planned,
        workload,
        index_bytes_per_item: shared.settings.index_bytes_per_item,
        device,
    };
    let plan = match asked.compare(&state.plan) {
        Ok((present, best, demand)) => {
            (decision.is_changed, decision.reason) = judge(&present, &best, &demand);
            decision.operation_us = (present.figures.score_us(&demand), best.figures.score_us(&demand));
            decision.memory_bytes_per_item = (present.figures.bytes_per_item, best.figures.bytes_per_item);
            decision.best = Some(best.plan.to_string());
            decision.proposal = asked.propose(&best, &demand);
            if decision.is_changed { best.plan.try_into()? } else { state.plan.clone() }
        }
        // If no plan can be made, the keyspace keeps its plan.
        Err(error) => {
            decision.reason = error.to_string();
            state.plan.clone()
        }
    };
    keyspace.table_lookups.set_planned(absent_share);
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

/// What the planner is asked.
#[derive(Debug, Clone)]
struct Asked {
    measured: Measured,
    /// Number of items for which the plan is made.
    items: u64,
    workload: Workload,
    index_bytes_per_item: Option<f64>,
    device: device::DeviceFigures,
}

impl Asked {
    fn demand(&self) -> std::result::Result<Demand, ModelError> {
        let Measured { key_bytes, value_bytes, .. } = self.measured;
        let workload = Workload { key_bytes, value_bytes, ..self.workload };
        workload.demand(self.items, self.index_bytes_per_item, self.device.clone())
    }

    /// The present plan and the best one, with their costs.
    fn compare(&self, plan: &LevelsPlan) -> std::result::Result<(Candidate, Candidate, Demand), ModelError> {
        let demand = self.demand()?;
        let present = demand.candidate(plan.clone().into())?;
        let best = plan_executable(&demand, &Space::default())?;
        Ok((present, best, demand))
    }

    /// What filters for all items would bring, if absent keys cost reads under the best plan, and the memory for the
    /// filters saves a good part of each operation.
    fn propose(&self, best: &Candidate, demand: &Demand) -> Option<String> {
        let absent_share = self.workload.absent_share();
        if absent_share * best.figures.reads_per_miss < PROPOSAL_READS_MIN {
            return None;
        }
        let filtered = Self { index_bytes_per_item: Some(FILTERED_BYTES_PER_ITEM), ..self.clone() };
        let filtered = plan_executable(&filtered.demand().ok()?, &Space::default()).ok()?;
        let [now_us, then_us] = [best, &filtered].map(|candidate| candidate.figures.score_us(demand));
        (then_us < now_us * PROPOSAL_TIME_MAX).then(|| {
            format!(
                "{:.0} % of the gets are of absent keys, at {:.2} reads each; with `index_bytes_per_item({:.1})` it is \
                 {:.3}, and an operation takes {then_us:.1} us of the device, not {now_us:.1}",
                absent_share * 100.0,
                best.figures.reads_per_miss,
                (filtered.figures.bytes_per_item * 10.0).ceil() / 10.0,
                filtered.figures.reads_per_miss,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use alluvium_model::Plan;
    use alluvium_model::planner::DeviceFigures;

    use super::*;

    fn asked(items: u64, value_bytes: f64) -> Asked {
        let measured = Measured { items, key_bytes: 16.0, value_bytes };
        let (workload, device) = (Workload::default(), DeviceFigures::default());
        Asked { measured, items, workload, index_bytes_per_item: None, device }
    }

    fn compared(plan: &LevelsPlan, items: u64, value_bytes: f64) -> (Candidate, Candidate, Demand) {
        asked(items, value_bytes).compare(plan).unwrap()
    }

    #[test]
    fn memory_for_filters_is_proposed_where_absent_keys_cost_reads() {
        let propose = |items, absent_share| {
            let asked = Asked { workload: Workload::of_absent_share(absent_share), ..asked(items, 100.0) };
            let demand = asked.demand().unwrap();
            let best = plan_executable(&demand, &Space::default()).unwrap();
            asked.propose(&best, &demand)
        };
        let proposal = propose(2_000_000_000, 0.5).unwrap();
        assert!(proposal.contains("50 %") && proposal.contains("index_bytes_per_item("), "{proposal}");
        assert_eq!(propose(2_000_000_000, 0.0), None);
        // The default's minimum of memory has room for filters.
        assert_eq!(propose(2_000_000, 0.5), None);
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
