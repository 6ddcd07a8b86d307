//! Runs that collect: items are written twice, and old values are merged away before there are many of them.

use alluvium::{Db, Durability};
use alluvium_model::{LevelsPlan, Plan};

const ITEMS: u64 = 30_000;
const VALUE_BYTES: usize = 1_000;
/// Approximate number of items of a log.
const LOG_ITEMS: u64 = 1_000;

/// The plan, with logs of 1 MiB.
fn plan() -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, levels }) = Plan::silt_tiering() else {
        unreachable!()
    };
    log.segment_bytes_max = 1 << 20;
    sharding.items_per_shard = 4_000;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn open(directory: &std::path::Path) -> Db {
    Db::builder(directory)
        .plan(plan())
        .durability(Durability::Buffered)
        .background(false)
        .expected_items(ITEMS)
        .row_cache_bytes_max(0)
        .open()
        .unwrap()
}

fn value(number: u64, round: u64) -> Vec<u8> {
    let word = (number ^ round << 40).to_le_bytes();
    word.iter().copied().cycle().take(VALUE_BYTES).collect()
}

/// Does the background work that is due, each time a log is about full: without background threads, writers only
/// convert logs.
fn work_at_times(db: &Db, written: u64) {
    if written % LOG_ITEMS == LOG_ITEMS - 1 {
        db.wait_idle().unwrap();
    }
}

/// Bytes of tables, by the pages of all levels except the log.
fn table_bytes(db: &Db) -> f64 {
    db.stats().levels.iter().filter(|level| level.name != "log").map(|level| level.bytes as f64).sum()
}

/// Number of pages read to look up a thousand absent keys.
fn reads_of_missing(db: &Db) -> u64 {
    let items = db.keyspace("items").unwrap();
    let before = db.stats().traffic.page_reads;
    for number in ITEMS..ITEMS + 1_000 {
        assert_eq!(items.get(number.to_le_bytes()).unwrap(), None);
    }
    db.stats().traffic.page_reads - before
}

#[test]
fn new_items_are_written_twice_and_old_values_stay_few() {
    let directory = tempfile::tempdir().unwrap();
    let user_bytes = (ITEMS * (8 + VALUE_BYTES as u64)) as f64;
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    for number in 0..ITEMS {
        items.insert(number.to_le_bytes(), value(number, 0)).unwrap();
        work_at_times(&db, number);
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let stats = db.stats();
    assert_eq!(stats.traffic.merges, 0, "nothing is older than what was loaded");
    assert_eq!(stats.items, ITEMS);
    assert!(table_bytes(&db) < 1.03 * user_bytes, "{} bytes of tables", table_bytes(&db));
    // Thirty runs, each with a filter that accepts one absent key in four thousand.
    assert!(reads_of_missing(&db) < 100, "{} reads", reads_of_missing(&db));

    let mut state = 7u64;
    let mut rounds = vec![0; ITEMS as usize];
    for round in 1..=3 {
        let merges_before = db.stats().traffic.merges;
        for written in 0..ITEMS {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = (state >> 33) % ITEMS;
            items.insert(number.to_le_bytes(), value(number, round)).unwrap();
            rounds[number as usize] = round;
            work_at_times(&db, written);
        }
        db.wait_idle().unwrap();
        assert!(db.stats().traffic.merges > merges_before, "no merge in round {round}");
        // A quarter is old values; sampling is not exact.
        assert!(table_bytes(&db) < 1.4 * user_bytes, "{} bytes of tables", table_bytes(&db));
    }
    // The sorted run has a filter, too.
    assert!(reads_of_missing(&db) < 100, "{} reads", reads_of_missing(&db));
    let merges = db.stats().traffic.merges;
    drop(items);
    db.close().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    for (number, round) in (0u64..).zip(&rounds) {
        let found = items.get(number.to_le_bytes()).unwrap();
        assert_eq!(found, Some(value(number, *round)), "item {number}");
    }
    assert!(merges > 0 && db.verify().unwrap().problems.is_empty());
}
