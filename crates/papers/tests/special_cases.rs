//! The plan model compared with the papers' models, each of which is a special case.

use alluvium_model::models::Cost;
use alluvium_model::plan_model::{ItemSize, PlanModel, Rules, Workload};
use alluvium_model::{
    Filter, Growth, Index, KeyDistribution, LevelSpec, LevelsPlan, LogSpec, Plan, Sharding, TableLayout,
};
use alluvium_papers::models::{LevelDb, LsmTrie, Samt, Silt};

const KILOBYTE: ItemSize = ItemSize { key_bytes: 16.0, value_bytes: 984.0, deviation_bytes: 0.0 };

/// One log of `entries` entries, as in the papers.
fn one_log(entries: u32) -> (Sharding, LogSpec) {
    let sharding =
        Sharding { log_entries_per_shard: entries, log_share: 0.999, shards_max: 1, ..Sharding::default() };
    (sharding, LogSpec { segment_bytes_max: 4 << 30, ..LogSpec::default() })
}

fn level(growth: Growth) -> LevelSpec {
    LevelSpec { growth, table: TableLayout::Sorted, filter: Filter::None, index: Index::Fences }
}

fn tiering(runs_max: u32) -> LevelSpec {
    level(Growth::Tiering { runs_max, share: 0.999 })
}

fn leveling(ratio: f64) -> LevelSpec {
    level(Growth::Leveling { ratio })
}

fn in_papers_world(entries: u32, levels: Vec<LevelSpec>, keys: &KeyDistribution) -> PlanModel {
    let (sharding, log) = one_log(entries);
    let plan = Plan::Levels(LevelsPlan { sharding, log, levels });
    PlanModel { rules: Rules::papers(), ..PlanModel::new(plan, Workload::updates(keys.clone(), KILOBYTE)) }
}

fn assert_within(actual: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((actual / expected - 1.0).abs() <= tolerance, "{what}: {actual} instead of {expected}");
}

fn assert_same_writes(actual: &Cost, expected: &Cost) {
    assert_eq!(actual.writes.len(), expected.writes.len());
    for (actual, expected) in actual.writes.iter().zip(&expected.writes) {
        assert_within(actual.amount, expected.amount, 1e-9, &expected.name);
    }
}

fn distributions() -> [KeyDistribution; 2] {
    [KeyDistribution::uniform(1e6).unwrap(), KeyDistribution::zipf(1e6, 0.99).unwrap()]
}

#[test]
fn samt_is_tiering_over_one_run() {
    for keys in distributions() {
        let model = in_papers_world(1_000, vec![tiering(4), tiering(4), leveling(4.0)], &keys);
        let cost = model.cost().unwrap().cost;
        let samt = Samt { wal: keys.unique_inverse(1_000.0), levels: 3, growth: 4, index_bytes: 0.0 };
        let samt = samt.cost(&keys).unwrap();
        assert_same_writes(&cost, &samt);
        assert_within(cost.reads_per_get, samt.reads_per_get, 1e-9, "reads per get");
        assert_within(cost.reads_per_miss, samt.reads_per_miss, 1e-9, "reads per miss");
    }
}

#[test]
fn silt_is_one_filtered_level_over_one_run() {
    for keys in distributions() {
        let hash = LevelSpec {
            growth: Growth::Tiering { runs_max: 30, share: 0.999 },
            table: TableLayout::Hash,
            filter: Filter::Cuckoo { tag_bits: 15 },
            index: Index::Implicit,
        };
        let mut model = in_papers_world(9_300, vec![hash, leveling(4.0)], &keys);
        model.rules.hash_fill = 0.93;
        let cost = model.cost().unwrap().cost;
        let silt = Silt { table: 10_000.0, hash_stores: 30.0, ..Silt::default() }.cost(&keys).unwrap();
        assert_same_writes(&cost, &silt);
        // SILT's log is on flash, so its share of gets reads it; here the log's bytes are in memory.
        assert_within(cost.reads_per_miss, silt.reads_per_miss, 1e-3, "reads per miss");
        assert!(cost.reads_per_get < silt.reads_per_get);
    }
}

#[test]
fn leveldb_is_tiering_over_leveling() {
    for keys in distributions() {
        let levels = vec![tiering(4), leveling(3.0), leveling(10.0), leveling(10.0)];
        let mut model = in_papers_world(400, levels, &keys);
        model.rules.false_overlaps = true;
        let cost = model.cost().unwrap().cost;
        let wal = keys.unique_inverse(400.0);
        let size = 3.0 * keys.unique(4.0 * wal);
        let sizes = vec![size, 10.0 * size];
        let leveldb = LevelDb { wal, sizes, ..LevelDb::default() }.cost(&keys).unwrap();
        assert_same_writes(&cost, &leveldb);
        assert_within(cost.reads_per_miss, leveldb.reads_per_miss, 1e-9, "reads per miss");
        model.rules.false_overlaps = false;
        assert!(model.cost().unwrap().cost.write_amplification() < cost.write_amplification());
    }
}

#[test]
fn lsm_trie_is_tiering_all_the_way_down() {
    let bucketed = |runs_max, on_flash| LevelSpec {
        growth: Growth::Tiering { runs_max, share: 0.999 },
        table: TableLayout::Bucketed,
        filter: Filter::BloomCluster { on_flash },
        index: Index::Implicit,
    };
    let upper = bucketed(8, false);
    let (sharding, log) = one_log(1 << 19);
    let levels = vec![upper, upper, upper, upper, bucketed(120, true)];
    let plan = Plan::Levels(LevelsPlan { sharding, log, levels });
    let item = ItemSize { key_bytes: 16.0, value_bytes: 48.0, deviation_bytes: 0.0 };
    let keys = 1.6e11;
    let workload = Workload { start_keys: 1.5e11, ..Workload::load(keys, item).unwrap() };
    let cost = PlanModel { rules: Rules::papers(), ..PlanModel::new(plan, workload) }.cost().unwrap().cost;
    // A log and five levels, each written once, flat up to 10 TB.
    assert_within(cost.write_amplification(), 6.0, 1e-6, "rewrites");
    let uniform = KeyDistribution::uniform(keys).unwrap();
    let paper = LsmTrie { fill: 1.0, runs: 4, ..LsmTrie::default() }.cost(&uniform).unwrap();
    assert_within(cost.reads_per_get, paper.reads_per_get, 0.01, "reads per get");
    assert_within(cost.memory[1].amount, paper.memory[0].amount, 0.15, "filters");
}
