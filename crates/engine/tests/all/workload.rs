//! What a program says about its use of the database decides about automatic plans.

use alluvium::{Db, Durability, Plan, Workload};
use alluvium_model::Filter;

const ITEMS: u32 = 150_000;

fn key(number: u32) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

fn load(db: &Db) {
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..ITEMS {
        keyspace.insert(key(number), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
}

/// The mean number of reads of a get of an absent key.
fn absent_reads(db: &Db) -> f64 {
    let keyspace = db.keyspace("k").unwrap();
    let before = db.stats().traffic.page_reads;
    let absent = 20_000;
    for number in 0..absent {
        assert_eq!(keyspace.get(key(10 * ITEMS + number)).unwrap(), None);
    }
    (db.stats().traffic.page_reads - before) as f64 / f64::from(absent)
}

fn has_unfiltered_level(plan: &Plan) -> bool {
    let Plan::Levels(plan) = plan else { return false };
    plan.levels.iter().any(|level| level.filter == Filter::None)
}

#[test]
fn deduplication_gets_a_plan_that_reads_nothing_for_absent_keys() {
    let directory = tempfile::tempdir().unwrap();
    let workload = Workload { gets: 0.25, absent_gets: 0.25, puts: 0.5, ..Workload::default() };
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.workload(workload).index_bytes_per_item(2.5).open().unwrap();
    let plan = db.keyspace("k").unwrap().plan();
    assert!(!has_unfiltered_level(&plan), "{plan}");
    load(&db);
    let reads = absent_reads(&db);
    assert!(reads <= 0.01, "{reads} reads under {plan}");
}

/// Without being told: the share of absent keys among the gets that tables answer is counted.
#[test]
fn deduplication_is_found_by_what_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    load(&db);
    let keyspace = db.keyspace("k").unwrap();
    assert!(has_unfiltered_level(&keyspace.plan()), "{}", keyspace.plan());
    // Each key is asked for before it is written, as deduplication does.
    for number in ITEMS..2 * ITEMS {
        assert_eq!(keyspace.get(key(number)).unwrap(), None);
        keyspace.insert(key(number), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    let decisions = db.stats().plan_decisions;
    assert!(decisions.iter().any(|decision| decision.absent_share > 0.9), "{decisions:?}");
    assert!(!has_unfiltered_level(&keyspace.plan()), "{decisions:?}");
    db.compact().unwrap();
    let reads = absent_reads(&db);
    assert!(reads <= 0.01, "{reads} reads under {}", keyspace.plan());
}

#[test]
fn a_hint_about_the_items_does_not_cost_rewrites() {
    let plan_for = |expected_items| {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).expected_items(expected_items).open().unwrap();
        db.keyspace("k").unwrap().plan()
    };
    let writes = |plan: &Plan, items: f64| {
        let keys = alluvium_model::KeyDistribution::uniform(items).unwrap();
        let item = alluvium_model::plan_model::ItemSize {
            key_bytes: 16.0,
            value_bytes: 100.0,
            deviation_bytes: 0.0,
        };
        let device = Default::default();
        let demand = alluvium_model::planner::Demand::new(keys, item, device);
        demand.candidate(plan.clone()).unwrap().figures.write_amplification
    };
    let without = plan_for(0);
    for items in [200_000, 20_000_000] {
        let with = plan_for(items);
        let (with, without) = (writes(&with, items as f64), writes(&without, items as f64));
        assert!(with <= without * 1.001, "{items} items: {with} with the hint, {without} without");
    }
}

#[test]
fn runs_that_collect_have_filters_over_the_few_items_below_them() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.plan(Plan::silt_tiering()).open().unwrap();
    assert!(!has_unfiltered_level(&Plan::silt_tiering()));
    load(&db);
    db.compact().unwrap();
    let levels = db.stats().levels;
    assert_eq!(levels[2].items, u64::from(ITEMS), "{levels:?}");
    let reads = absent_reads(&db);
    assert!(reads <= 0.01, "{reads} {levels:?}");
}

#[test]
fn shares_that_are_no_numbers_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    for workload in [
        Workload { gets: f64::NAN, ..Workload::default() },
        Workload { gets: 0.0, puts: 0.0, ..Workload::default() },
        Workload { skew: -1.0, ..Workload::default() },
        Workload { value_bytes: f64::INFINITY, ..Workload::default() },
    ] {
        let db = Db::builder(directory.path()).workload(workload).open();
        let made = db.and_then(|db| db.keyspace("k"));
        assert!(matches!(made, Err(alluvium::Error::Plan(_))), "{made:?}");
    }
}
