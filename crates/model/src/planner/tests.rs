//! The planner compared with pricing all plans one by one.

use proptest::prelude::*;

use super::{Candidate, Demand, DeviceFigures, Limits, OperationMix, Space, Weights, plan, plan_executable};
use crate::plan_model::ItemSize;
use crate::{Filter, Growth, Index, KeyDistribution, LevelsPlan, Plan};

const SMALL: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 100.0, deviation_bytes: 0.0 };

/// Small enough to look at every plan.
fn small_space() -> Space {
    Space {
        tiering_levels_max: 1,
        leveling_levels_max: 2,
        runs: vec![4, 16],
        shares: vec![0.1],
        ratios: vec![8.0],
        last_runs: vec![32],
        tag_bits: vec![10],
        static_bits: vec![9],
        fragment_bits: vec![6],
        chain_lengths: vec![2.0, 10.0],
        ..Space::default()
    }
}

/// Each plan of the space, priced independently.
fn all_plans(demand: &Demand, space: &Space) -> Vec<Candidate> {
    let mut plans: Vec<Plan> = space.chains().map(Plan::Chained).collect();
    for growths in space.growths() {
        let mut stacks = vec![Vec::new()];
        for growth in growths {
            let layouts = space.layouts(growth);
            let longer = |young: Vec<_>| layouts.iter().map(move |level| [&young[..], &[*level]].concat());
            stacks = stacks.into_iter().flat_map(longer).collect();
        }
        plans.extend(
            stacks
                .into_iter()
                .map(|levels| Plan::Levels(LevelsPlan { sharding: space.sharding, log: space.log, levels })),
        );
    }
    plans.into_iter().map(|plan| demand.candidate(plan).unwrap()).collect()
}

/// Whether the search for executable plans looks at it. The engine executes a plan of one level as two, which the space
/// has, too (docs/decisions/0080-a-level-alone-is-merged-into-itself.md).
fn is_searched(plan: &Plan) -> bool {
    plan.as_levels().is_err() || plan.as_levels().is_ok_and(|plan| plan.levels.len() > 1)
}

fn demand(keys: f64, skew: f64) -> Demand {
    let keys = KeyDistribution::zipf(keys, skew).unwrap();
    Demand::new(keys, SMALL, DeviceFigures::default())
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs()).max(1.0)
}

#[test]
fn short_memory_is_kept_with_indexes_on_flash() {
    let space = small_space();
    let mut demand = demand(1e9, 0.0);
    let enough = plan(&demand, &space).unwrap();
    let reads = enough.executable_frontier.iter().map(|plan| plan.figures.reads_per_get);
    let reads_per_get = reads.fold(f64::INFINITY, f64::min);
    // Less memory would not even hold the log's own index.
    demand.limits.memory_bytes = 0.95 * enough.frontier[0].figures.bytes_per_item * 1e9;
    let planned = plan(&demand, &space).unwrap();
    assert!(planned.best.is_none() && planned.executable.is_none());
    let chosen = planned.recommended().unwrap();
    assert!(chosen.is_degraded() && chosen.is_executable);
    assert!(chosen.figures.keeps(&demand.limits, 1e9));
    assert!(chosen.figures.reads_per_get > reads_per_get + 0.05, "{chosen:?}");
    assert!(close(demand.cost_of(chosen).unwrap().cost.bytes_per_item(), chosen.figures.bytes_per_item));
    // The log's own index must be in memory.
    demand.limits.memory_bytes = 1_000.0;
    let planned = plan(&demand, &space).unwrap();
    assert!(planned.recommended().is_none());
    assert!(planned.explanation.concat().contains("No plan keeps all limits"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3))]
    #[test]
    fn agrees_with_brute_force(
        power in 6.0..10.0f64,
        mix in (0.01..1.0f64, 0.01..1.0f64, 0.0..1.0f64, 0.0..0.5f64),
        budget in 0.1..3.0f64,
        (write, memory_us) in (0.1..50.0f64, prop_oneof![Just(0.0), 0.0..5.0f64]),
    ) {
        let (put, get, miss, delete) = mix;
        let mut demand = demand(10f64.powf(power).round(), 0.0);
        demand = demand.with_mix(OperationMix { put, get, miss, delete });
        demand.limits.memory_bytes = budget * demand.workload.live_keys();
        demand.weights = Weights { write, memory_us, ..Weights::default() };
        let space = small_space();
        let planned = plan(&demand, &space).unwrap();
        let all = all_plans(&demand, &space);
        let beats = |left: &Candidate, right: &Candidate| {
            (0..3).all(|axis| left.figures.axes()[axis] <= right.figures.axes()[axis] * (1.0 - 1e-9))
                && left.figures.reads_per_put <= right.figures.reads_per_put
        };
        for candidate in planned.frontier.iter().chain(&planned.executable_frontier) {
            prop_assert!(candidate.plan.validate().is_ok());
            prop_assert_eq!(candidate.is_executable, candidate.plan.is_executable());
            let alone = demand.candidate(candidate.plan.clone()).unwrap();
            for axis in 0..3 {
                prop_assert!(close(alone.figures.axes()[axis], candidate.figures.axes()[axis]), "{alone:?}");
            }
            prop_assert!(close(alone.figures.space_amplification, candidate.figures.space_amplification));
        }
        for candidate in &planned.frontier {
            prop_assert!(all.iter().all(|other| !beats(other, candidate)), "{candidate:?}");
        }
        let live = demand.workload.live_keys();
        for (chosen, executable) in [(&planned.best, false), (&planned.executable, true)] {
            let lowest = all
                .iter()
                .filter(|other| other.figures.keeps(&demand.limits, live))
                .filter(|other| other.is_executable && is_searched(&other.plan) || !executable)
                .map(|other| other.figures.score_us(&demand))
                .fold(f64::INFINITY, f64::min);
            match chosen {
                Some(chosen) => prop_assert!(close(chosen.figures.score_us(&demand), lowest)),
                None => prop_assert!(lowest.is_infinite()),
            }
        }
        if let Some(executable) = &planned.executable {
            let chosen = plan_executable(&demand, &space).unwrap();
            let is_by_memory = executable.is_chained() && !chosen.is_chained();
            prop_assert!(&chosen == executable || is_by_memory, "{executable:?}, {chosen:?}");
            // Chains that alone keep the limits are not taken if they read much.
            prop_assert!(!is_by_memory || !chosen.figures.keeps(&demand.limits, live));
        }
    }
}

#[test]
fn limits_are_kept_and_explained() {
    let mut demand = demand(1e8, 0.0);
    let planned = plan(&demand, &Space::default()).unwrap();
    let chosen = planned.recommended().unwrap();
    assert!(chosen.is_executable && chosen.figures.bytes_per_item <= 0.5, "{chosen:?}");
    assert!(planned.explanation.iter().any(|sentence| sentence.contains("memory")), "{planned:?}");
    assert_eq!(planned.named.len(), Plan::NAMES.len());
    // Tighter in writes, then in everything at once.
    demand.limits.write_amplification = chosen.figures.write_amplification * 0.9;
    let tighter = plan(&demand, &Space::default()).unwrap();
    let limit = demand.limits.write_amplification;
    assert!(tighter.best.is_none_or(|best| best.figures.write_amplification <= limit * (1.0 + 1e-9)));
    demand.limits = Limits { memory_bytes: 1.0, write_amplification: 1.0, reads_per_lookup: 0.1 };
    let none = plan(&demand, &Space::default()).unwrap();
    assert!(none.recommended().is_none());
    assert!(none.explanation.iter().any(|sentence| sentence.contains("No plan keeps")));
    // A caller that must have a plan gets the smallest of levels.
    let smallest = plan_executable(&demand, &Space::default()).unwrap();
    let least = none.executable_frontier.iter().find(|candidate| !candidate.is_chained());
    assert_eq!(Some(&smallest), least);
}

#[test]
fn chains_are_best_where_writes_rule() {
    let writing = OperationMix { put: 1.0, get: 0.0001, ..OperationMix::default() };
    let planned = plan(&demand(1e8, 0.0).with_mix(writing), &Space::default()).unwrap();
    assert!(planned.recommended().unwrap().is_chained());
    assert!(
        planned.explanation.concat().contains("chosen for its few rewrites"),
        "{:?}",
        planned.explanation
    );
    assert!(plan_executable(&demand(1e8, 0.0).with_mix(writing), &Space::default()).unwrap().is_chained());
    let usual = plan(&demand(1e8, 0.0), &Space::default()).unwrap();
    assert!(!usual.recommended().unwrap().is_chained());
}

#[test]
fn more_memory_buys_fewer_writes() {
    let mut last = f64::INFINITY;
    for bytes_per_item in [0.3, 0.45, 0.7, 1.0] {
        let mut demand = demand(2e7, 0.0);
        demand.limits.memory_bytes = bytes_per_item * 2e7;
        let chosen = plan_executable(&demand, &Space::default()).unwrap();
        assert!(chosen.figures.write_amplification <= last, "{bytes_per_item}: {chosen:?}");
        last = chosen.figures.write_amplification;
        let Plan::Levels(LevelsPlan { levels, .. }) = &chosen.plan else { unreachable!() };
        assert!(matches!(levels[0].growth, Growth::Tiering { .. }));
    }
}

#[test]
fn senseless_demands_are_refused() {
    let refused = |change: fn(&mut Demand)| {
        let mut demand = demand(1e6, 0.0);
        change(&mut demand);
        plan(&demand, &small_space()).unwrap_err()
    };
    refused(|demand| demand.mix.put = -1.0);
    refused(|demand| demand.mix = OperationMix { put: 0.0, get: 0.0, miss: 0.0, delete: 0.0 });
    refused(|demand| demand.limits.memory_bytes = f64::NAN);
    refused(|demand| demand.weights.write = f64::INFINITY);
    refused(|demand| demand.device.reads.clear());
    refused(|demand| demand.device.write_bytes_per_s = 0.0);
}

/// Of equally many false positives, tags of 12 bits have 8 · 0.95 · 2^-12 = 2^-9.07.
#[test]
fn fragments_save_a_bit_compared_with_tags_and_cost_one_compared_with_static_filters() {
    let demand = demand(2e7, 0.0);
    let figures = |filter, index| {
        let mut plan = LevelsPlan::silt();
        (plan.levels[1].filter, plan.levels[1].index) = (filter, index);
        let figures = demand.candidate(plan.into()).unwrap().figures;
        (figures.bytes_per_item * 8.0, figures.reads_per_miss)
    };
    let (tag_bits, tag_reads) = figures(Filter::Cuckoo { tag_bits: 12 }, Index::Fences);
    let (fragment_bits, fragment_reads) = figures(Filter::Fragments { bits: 9 }, Index::TrieDense);
    let (static_bits, static_reads) = figures(Filter::Static { bits: 9 }, Index::Fences);
    assert!((tag_reads - fragment_reads).abs() < 0.001 && fragment_reads == static_reads);
    let (saved, lost) = (tag_bits - fragment_bits, fragment_bits - static_bits);
    assert!((0.9..1.5).contains(&saved), "{saved} bits saved");
    assert!((1.8..2.4).contains(&lost), "{lost} bits lost");
}

/// Tables in buckets have no index at all, and static filters are the smallest.
#[test]
fn static_filters_in_buckets_beat_fragments() {
    let mut demand = demand(2e7, 0.0).with_mix(OperationMix { put: 0.2, get: 0.4, miss: 0.4, delete: 0.0 });
    demand.limits.memory_bytes = 1.1 * 2e7;
    let space =
        Space { static_bits: Space::default().static_bits, fragment_bits: Vec::new(), ..small_space() };
    let best = plan_executable(&demand, &space).unwrap();
    let offered = Space { fragment_bits: vec![2, 4, 6, 8], ..space };
    assert_eq!(plan_executable(&demand, &offered).unwrap(), best);
    let is_dense = |plan: &Plan| plan.to_string().contains("dense trie");
    assert!(!is_dense(&best.plan));
    let sorted_only = Space { static_bits: Vec::new(), ..offered };
    let best = plan_executable(&demand, &sorted_only).unwrap();
    assert!(is_dense(&best.plan), "{}", best.plan);
}
