//! Levels of runs above levels of runs: in a store that is repeatedly overwritten, the number of old values stays
//! bounded.

use alluvium::{Db, Durability};
use alluvium_model::{Growth, LevelsPlan, Plan, TIERS_GARBAGE_SHARE_MAX};

const ITEMS: u64 = 24_000;
const VALUE_BYTES: usize = 100;
/// Approximate number of items of a log.
const LOG_ITEMS: u64 = 500;

/// The plan with small logs, and with `runs_max` runs at each level above the last.
fn small(plan: Plan, runs_max: u32) -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, mut levels }) = plan else { unreachable!() };
    log.segment_bytes_max = 64 << 10;
    sharding.items_per_shard = ITEMS;
    let last = levels.len() - 1;
    for level in &mut levels[..last] {
        if let Growth::Tiering { .. } = level.growth {
            level.growth = Growth::Tiering { runs_max, share: Growth::ANY_SHARE };
        }
    }
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn open(directory: &std::path::Path, plan: Plan) -> Db {
    Db::builder(directory)
        .plan(plan)
        .durability(Durability::Buffered)
        .background(false)
        .expected_items(ITEMS)
        .open()
        .unwrap()
}

fn value(number: u64, round: u64) -> Vec<u8> {
    let word = (number ^ round << 40).to_le_bytes();
    word.iter().copied().cycle().take(VALUE_BYTES).collect()
}

/// Number of items in tables per present item, and number of tables over one position.
fn records(db: &Db) -> f64 {
    let levels = db.stats().levels;
    let in_tables: u64 = levels.iter().filter(|level| level.name != "log").map(|level| level.items).sum();
    in_tables as f64 / ITEMS as f64
}

fn old_values_stay_bounded(plan: Plan, written_max: f64) {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), plan.clone());
    let items = db.keyspace("items").unwrap();
    for number in 0..ITEMS {
        items.insert(number.to_le_bytes(), value(number, 0)).unwrap();
        if number % LOG_ITEMS == 0 {
            db.wait_idle().unwrap();
        }
    }
    let mut state = 7u64;
    let mut rounds = vec![0; ITEMS as usize];
    for round in 1..=4 {
        let before = db.stats().traffic;
        for written in 0..ITEMS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 33) % ITEMS;
            items.insert(number.to_le_bytes(), value(number, round)).unwrap();
            rounds[number as usize] = round;
            if written % LOG_ITEMS == 0 {
                db.wait_idle().unwrap();
                // Samples of 32 are not exact; in addition, a tenth of the last level is old values.
                let most = 1.0 + TIERS_GARBAGE_SHARE_MAX + 0.1 + 0.2;
                assert!(records(&db) < most, "{} records for an item in round {round}", records(&db));
            }
        }
        let after = db.stats().traffic;
        let of_levels = |one: alluvium::TrafficStats| one.hash_bytes_written + one.sorted_bytes_written;
        let put = (after.bytes_put - before.bytes_put) as f64;
        let written = (of_levels(after) - of_levels(before)) as f64 / put;
        assert!(written < written_max, "{written} bytes written for a byte in round {round}");
    }
    drop(items);
    db.close().unwrap();
    let db = open(directory.path(), plan);
    let items = db.keyspace("items").unwrap();
    for (number, round) in (0u64..).zip(&rounds) {
        let found = items.get(number.to_le_bytes()).unwrap();
        assert_eq!(found, Some(value(number, *round)), "item {number}");
    }
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn tables_in_buckets_hold_few_old_values() {
    old_values_stay_bounded(small(Plan::lsm_trie(), 8), 8.0);
}

#[test]
fn sorted_tables_under_one_filter_hold_few_old_values() {
    old_values_stay_bounded(small(Plan::slimdb_tiering(), 8), 8.0);
}

#[test]
fn young_runs_over_a_last_level_of_runs_hold_few_old_values() {
    old_values_stay_bounded(small(Plan::tiered(), 16), 8.0);
}
