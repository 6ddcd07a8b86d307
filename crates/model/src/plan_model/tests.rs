//! The plan model compared with measurements. That the papers' models are special cases of it is tested in the crate
//! `alluvium-papers`.

use proptest::prelude::*;

use super::{GetPopularity, ItemSize, PlanCost, PlanModel, Rules, Workload};
use crate::{
    Filter, Growth, Index, KeyDistribution, LevelSpec, LevelsPlan, LogSpec, Plan, Sharding, TableLayout,
};

const KILOBYTE: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 984.0, deviation_bytes: 0.0 };
pub(super) const SMALL: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 100.0, deviation_bytes: 0.0 };

/// One log of `entries` entries, as in the papers.
fn one_log(entries: u32) -> (Sharding, LogSpec) {
    let sharding =
        Sharding { log_entries_per_shard: entries, log_share: 0.999, shards_max: 1, ..Sharding::default() };
    (sharding, LogSpec { segment_bytes_max: 4 << 30, ..LogSpec::default() })
}

pub(super) fn assert_within(actual: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((actual / expected - 1.0).abs() <= tolerance, "{what}: {actual} instead of {expected}");
}

/// The plan `silt` with the share that it had when the figures were measured.
fn silt(share: f64) -> Plan {
    let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
    levels[0].growth = Growth::Tiering { runs_max: 64, share };
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn settled(share: f64, workload: Workload) -> PlanCost {
    PlanModel::new(silt(share), workload).cost().unwrap()
}

fn at_full_speed(share: f64, workload: Workload) -> PlanCost {
    let rules = Rules::engine_at_full_speed();
    PlanModel { rules, ..PlanModel::new(silt(share), workload) }.cost().unwrap()
}

/// Measured with `alluvium bench store --plan silt --items 5000000 --phases load,update`, 16+100 bytes; reads with
/// `--items 2000000 --phases load,get,miss`.
#[test]
fn the_engine_as_measured() {
    let workload = Workload::load(5e6, SMALL).unwrap();
    let load = at_full_speed(0.095, workload.clone());
    assert_within(load.cost.write_amplification(), 5.02, 0.05, "rewrites while loading");
    assert_within(load.bytes_per_item_second_half, 0.448, 0.05, "memory in the second half");
    // After merges have caught up.
    let load = settled(0.095, workload).cost;
    assert_within(load.bytes_per_item(), 0.272, 0.05, "memory at the end of the load");
    assert_within(load.space_amplification(), 1.078, 0.03, "space");
    assert_within(load.reads_per_get, 0.9957, 0.003, "reads per get");
    assert_within(load.reads_per_miss, 1.0016, 0.001, "reads per miss");
    let keys = KeyDistribution::uniform(5e6).unwrap();
    let update = at_full_speed(0.095, Workload::updates(keys, SMALL));
    assert_within(update.cost.write_amplification(), 7.14, 0.05, "rewrites while updating");
    assert_within(update.cost.bytes_per_item(), 0.406, 0.05, "memory while updating");
    assert_within(update.cost.space_amplification(), 1.174, 0.03, "space while updating");
}

/// Measured with `alluvium bench store --plan NAME --items 5000000 --phases load,get,miss`, 16+100 bytes. Bytes written
/// are the engine's own count, since other processes used the device.
#[test]
fn plans_of_more_levels_as_measured() {
    for (plan, writes, memory, reads_per_miss) in
        [(Plan::silt_deep(), 4.378, 0.390, 1.003), (Plan::tiered(), 3.117, 1.746, 0.021)]
    {
        let workload = Workload::load(5e6, SMALL).unwrap();
        let rules = Rules::engine_at_full_speed();
        let load = PlanModel { rules, ..PlanModel::new(plan.clone(), workload.clone()) }.cost().unwrap();
        assert_within(load.cost.write_amplification(), writes, 0.05, "rewrites while loading");
        // After merges have caught up.
        let load = PlanModel::new(plan, workload).cost().unwrap();
        assert_within(load.cost.bytes_per_item(), memory, 0.08, "memory when loaded");
        assert!((load.cost.reads_per_miss - reads_per_miss).abs() < 0.02, "{}", load.cost.reads_per_miss);
    }
}

/// Measured for 20 million items, when the plan had a smaller share.
#[test]
fn the_engine_as_measured_at_twenty_million_items() {
    let workload = Workload::load(20e6, SMALL).unwrap();
    let load = at_full_speed(0.09, workload.clone());
    assert_within(load.cost.write_amplification(), 4.9, 0.05, "rewrites while loading");
    assert_within(load.bytes_per_item_second_half, 0.44, 0.08, "memory in the second half");
    let load = settled(0.09, workload).cost;
    assert_within(load.space_amplification(), 1.07, 0.03, "space");
    assert_within(load.bytes_per_item(), 0.27, 0.10, "memory at the end of the load");
    assert_within(load.reads_per_get, 0.99, 0.01, "reads per get");
}

/// Measured with `alluvium bench store --plan silt-tiering --items 2500000 --value-size 1000 --phases load,get,miss`.
#[test]
fn runs_that_collect_as_measured() {
    let workload = Workload::load(2.5e6, KILOBYTE).unwrap();
    let cost = PlanModel::new(Plan::silt_tiering(), workload.clone()).cost().unwrap().cost;
    assert_within(cost.write_amplification(), 2.02, 0.02, "rewrites while loading");
    assert_within(cost.bytes_per_item(), 2.69, 0.1, "memory");
    assert_within(cost.reads_per_get, 1.0, 0.01, "reads per get");
    assert_within(cost.reads_per_miss, 0.0075, 0.2, "reads per miss");
    // Overwriting: obsolete versions are a quarter of the items.
    let keys = KeyDistribution::uniform(2.5e6).unwrap();
    let update = PlanModel::new(Plan::silt_tiering(), Workload::updates(keys, KILOBYTE)).cost().unwrap().cost;
    assert!(update.space_amplification() < 1.35, "{}", update.space_amplification());
}

#[test]
fn only_runs_that_stay_are_cut_for_what_is_expected() {
    assert_eq!(Plan::silt_tiering().items_sharded(7, 1_000_000), 1_000_000);
    assert_eq!(Plan::silt_tiering().items_sharded(7, 0), 7);
    assert_eq!(Plan::silt().items_sharded(7, 1_000_000), 7);
}

#[test]
fn a_store_that_starts_full_of_memory_needs_no_reads() {
    let mut workload = Workload::updates(KeyDistribution::zipf(1e6, 0.99).unwrap(), SMALL);
    let plain = PlanModel::new(Plan::silt(), workload.clone()).cost().unwrap().cost;
    workload.cached_items = 1e6;
    let cached = PlanModel::new(Plan::silt(), workload.clone()).cost().unwrap().cost;
    assert!(cached.reads_per_get < 1e-9 && plain.reads_per_get > 0.2);
    workload.cached_items = 1e4;
    workload.gets = GetPopularity::Uniform;
    let uniform = PlanModel::new(Plan::silt(), workload).cost().unwrap().cost;
    assert!(uniform.reads_per_get > 0.9);
}

#[test]
fn short_memory_drops_filters_first_and_costs_reads() {
    let workload = Workload::updates(KeyDistribution::uniform(1e7).unwrap(), SMALL);
    let model = PlanModel::new(Plan::silt(), workload);
    let all = model.cost().unwrap().cost;
    let mut last = all.reads_per_miss;
    for share in [0.8, 0.5, 0.3] {
        let memory_limit_bytes = share * all.bytes_per_item() * 1e7;
        let short = PlanModel { memory_limit_bytes, ..model.clone() }.cost().unwrap().cost;
        assert_within(short.bytes_per_item() * 1e7, memory_limit_bytes, 1e-9, "memory");
        assert!(short.reads_per_miss > last, "{share}: {}", short.reads_per_miss);
        assert_eq!(short.writes, all.writes);
        last = short.reads_per_miss;
    }
    // At most one read for the filters, one for the index, one for the item.
    assert!(last < 3.1);
    assert!(PlanModel { memory_limit_bytes: 1e3, ..model }.cost().is_err());
}

#[test]
fn deletes_are_small_and_leave_space() {
    let keys = KeyDistribution::uniform(1e6).unwrap();
    let kept = PlanModel::new(Plan::silt(), Workload::updates(keys.clone(), KILOBYTE)).cost().unwrap().cost;
    let workload = Workload { delete_share: 0.3, ..Workload::updates(keys, KILOBYTE) };
    let deleting = PlanModel::new(Plan::silt(), workload).cost().unwrap().cost;
    // A tombstone is one more record for the young level, which is thus full sooner, but hardly a byte of the user's.
    let more = deleting.write_amplification() / kept.write_amplification();
    assert!(more > 1.2 && more < 1.0 / 0.7, "{more}");
    assert_within(deleting.space_amplification(), kept.space_amplification(), 0.05, "space");
    assert_within(deleting.bytes_per_item(), kept.bytes_per_item(), 0.05, "memory per live item");
}

#[test]
fn growth_without_new_keys_and_illegal_plans_are_refused() {
    let keys = KeyDistribution::uniform(1e6).unwrap();
    let workload = Workload { start_keys: 0.0, ..Workload::updates(keys.clone(), SMALL) };
    assert!(PlanModel::new(Plan::silt(), workload).cost().is_err());
    let (sharding, log) = one_log(1_000);
    let illegal = Plan::Levels(LevelsPlan { sharding, log, levels: Vec::new() });
    assert!(PlanModel::new(illegal, Workload::updates(keys, SMALL)).cost().is_err());
}

fn growths() -> impl Strategy<Value = Growth> {
    prop_oneof![
        (2u32..200, 0.001..0.999f64).prop_map(|(runs_max, share)| Growth::Tiering { runs_max, share }),
        (1.01..50.0f64).prop_map(|ratio| Growth::Leveling { ratio }),
    ]
}

fn levels() -> impl Strategy<Value = LevelSpec> {
    let filters = prop_oneof![
        Just(Filter::None),
        (4u32..=15).prop_map(|tag_bits| Filter::Cuckoo { tag_bits }),
        (4u32..=12).prop_map(|tag_bits| Filter::MultiLevelCuckoo { tag_bits }),
        (1u32..=32).prop_map(|bits| Filter::Static { bits }),
        (1u32..=32).prop_map(|bits| Filter::Fragments { bits }),
        any::<bool>().prop_map(|on_flash| Filter::BloomCluster { on_flash }),
    ];
    let tables = prop_oneof![
        Just((TableLayout::Bucketed, Index::Implicit)),
        Just((TableLayout::Sorted, Index::Trie)),
        Just((TableLayout::Sorted, Index::TrieDense)),
        Just((TableLayout::Sorted, Index::Fences)),
        Just((TableLayout::Sorted, Index::ThreeLevel)),
    ];
    (growths(), filters, tables).prop_map(|(growth, filter, (table, index))| {
        let (table, index) = match filter {
            Filter::Fragments { .. } => (TableLayout::Sorted, Index::TrieDense),
            _ => (table, index),
        };
        LevelSpec { growth, table, filter, index }
    })
}

fn plans() -> impl Strategy<Value = Plan> {
    (prop::collection::vec(levels(), 1..6), 64u32..1_000_000, 0.0001..0.5f64).prop_map(
        |(levels, log_entries_per_shard, log_share)| {
            Plan::Levels(LevelsPlan {
                sharding: Sharding { log_entries_per_shard, log_share, ..Sharding::default() },
                log: LogSpec::default(),
                levels,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_legal_plan_has_a_price(
        plan in plans(),
        (power, skew) in (0.0..12.0f64, 0.0..2.0f64),
        (fresh_share, delete_share) in (0.0..=1.0f64, 0.0..0.9f64),
        (value_bytes, deviation_bytes) in (0.0..20_000.0f64, 0.0..1_000.0f64),
        is_growing: bool,
    ) {
        let keys = KeyDistribution::zipf(10f64.powf(power).round(), skew).unwrap();
        let start_keys = if is_growing && fresh_share > 0.0 { 0.0 } else { keys.keys() };
        let item = ItemSize { key_bytes: 16.0, value_bytes, deviation_bytes };
        let workload =
            Workload { start_keys, fresh_share, delete_share, ..Workload::updates(keys, item) };
        let model = PlanModel::new(plan, workload);
        let PlanCost { cost, levels, .. } = model.cost().unwrap();
        let figures = [
            cost.write_amplification(),
            cost.reads_per_get,
            cost.reads_per_miss,
            cost.bytes_per_item(),
            cost.space_amplification(),
        ];
        prop_assert!(figures.iter().all(|figure| figure.is_finite() && *figure >= 0.0), "{figures:?}");
        prop_assert!(cost.write_amplification() >= 1.0 && !levels.is_empty());
        let components = cost.writes.iter().chain(&cost.memory).chain(&cost.space);
        prop_assert!(components.into_iter().all(|component| component.amount >= 0.0), "{cost:?}");
        // Too little memory costs reads, never writes.
        let limit = 0.7 * cost.bytes_per_item() * model.workload.live_keys();
        let short = PlanModel { memory_limit_bytes: limit, ..model };
        if let Ok(short) = short.cost() {
            prop_assert!(short.cost.reads_per_get >= cost.reads_per_get * (1.0 - 1e-9));
            prop_assert!(short.cost.reads_per_miss >= cost.reads_per_miss * (1.0 - 1e-9));
        }
    }
}
