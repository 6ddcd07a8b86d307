//! Plans change while data are present: everything can be read meanwhile, and in the end is stored according to the new
//! plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Keyspace, KeyspaceOptions, LevelsPlan, Plan, PrefixRule};
use alluvium_io::{SimulatedClock, SimulatedStorage};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// The plan with shards and logs so small that some thousand items reach the last level.
fn small(plan: Plan) -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, levels }) = plan else { unreachable!() };
    sharding.log_entries_per_shard = 64;
    sharding.items_per_shard = 300;
    sharding.shards_max = 4;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

/// The named plans of levels that the engine executes for hashed keys. Changes to and from chains are in `chained.rs`.
fn plans() -> Vec<(&'static str, Plan)> {
    let named = Plan::NAMES.iter().map(|&name| (name, Plan::named(name).unwrap()));
    let is_of_levels = |plan: &Plan| matches!(plan, Plan::Levels(_)) && plan.is_executable();
    named.filter(|(_, plan)| is_of_levels(plan)).map(|(name, plan)| (name, small(plan))).collect()
}

fn open(storage: &SimulatedStorage, plan: &Plan) -> Db {
    let environment = Environment {
        clock: Arc::new(SimulatedClock::default()),
        random_seed: 5,
        ..Environment::over(Arc::new(storage.clone()))
    };
    let builder =
        Db::builder("changing").plan(plan.clone()).background(false).durability(Durability::Buffered);
    builder.table_sizes(8 << 10, 32 << 10).environment(environment).open().unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key-{number}").into_bytes()
}

/// Overwrites, inserts and removes some of `keys` keys, starting at this step.
fn write(keyspace: &Keyspace, contents: &mut Contents, steps: std::ops::Range<u32>, keys: u32) {
    for step in steps {
        let key = key(step.wrapping_mul(2_654_435_761) % keys);
        if step % 7 == 0 {
            keyspace.remove(&key).unwrap();
            contents.remove(&key);
        } else {
            let value = format!("value {step} {}", "x".repeat(60)).into_bytes();
            keyspace.insert(&key, &value).unwrap();
            contents.insert(key, value);
        }
    }
}

fn check(keyspace: &Keyspace, contents: &Contents, keys: u32, what: &str) {
    for number in 0..keys {
        let key = key(number);
        assert_eq!(keyspace.get(&key).unwrap().as_deref(), contents.get(&key).map(Vec::as_slice), "{what}");
    }
    let found: Contents = keyspace
        .iter()
        .map(|item| item.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
        .collect();
    assert!(found == *contents, "{what}: iteration");
}

const KEYS: u32 = 3000;

#[test]
fn every_named_plan_becomes_every_other_with_data_in_place() {
    for (from_name, from) in plans() {
        let storage = SimulatedStorage::new(3);
        let db = open(&storage, &from);
        let keyspace = db.keyspace("items").unwrap();
        let mut contents = Contents::new();
        let mut steps = 0;
        for (name, plan) in plans().into_iter().filter(|(name, _)| *name != from_name) {
            let what = format!("{from_name} to {name}");
            write(&keyspace, &mut contents, steps..steps + 6000, KEYS);
            steps += 6000;
            while db.run_background_job().unwrap() {}
            db.change_plan(plan.clone()).unwrap();
            assert_eq!(keyspace.plan(), plan.clone().executed());
            check(&keyspace, &contents, KEYS, &what);
            // Writes continue while data are moved.
            for round in 0..8 {
                for _ in 0..3 {
                    db.run_background_job().unwrap();
                }
                write(&keyspace, &mut contents, steps..steps + 150, KEYS);
                steps += 150;
                if round % 3 == 0 {
                    check(&keyspace, &contents, KEYS, &what);
                }
            }
            while db.run_background_job().unwrap() {}
            assert!(!db.is_changing_plan() && db.stats().plan_changes.is_empty());
            check(&keyspace, &contents, KEYS, &what);
            assert_eq!(db.verify().unwrap().problems, Vec::<String>::new(), "{what}");
            // And back, by an opening with the former plan.
            db.change_plan(from.clone()).unwrap();
            for _ in 0..5 {
                db.run_background_job().unwrap();
            }
            check(&keyspace, &contents, KEYS, &what);
            while db.run_background_job().unwrap() {}
        }
    }
}

#[test]
fn an_opening_with_another_plan_changes_it_and_a_crash_does_not_change_it_back() {
    let storage = SimulatedStorage::new(7);
    let mut contents = Contents::new();
    let db = open(&storage, &small(Plan::tiered()));
    let items = db.keyspace("items").unwrap();
    let own = db.keyspace_with("own", &KeyspaceOptions::default().with_plan(small(Plan::silt()))).unwrap();
    write(&items, &mut contents, 0..9000, KEYS);
    db.wait_idle().unwrap();
    own.insert("key", "value").unwrap();
    drop((items, own));
    db.close().unwrap();

    let db = open(&storage.reopen(), &small(Plan::silt_deep()));
    let items = db.keyspace("items").unwrap();
    assert_eq!(items.plan(), small(Plan::silt_deep()));
    assert_eq!(db.keyspace("own").unwrap().plan(), small(Plan::silt()));
    let before = db.stats().plan_changes;
    assert_eq!(before.len(), 1);
    assert!(before[0].from == small(Plan::tiered()).to_string() && before[0].tables_left > 0, "{before:?}");
    assert!(before[0].bytes_left > 0 && before[0].levels.len() == 3);
    // Part of the way.
    for _ in 0..3 {
        db.run_background_job().unwrap();
    }
    let left = db.stats().plan_changes[0].tables_left;
    assert!(left < before[0].tables_left, "{left} of {}", before[0].tables_left);
    db.persist().unwrap();
    storage.crash();
    drop(items);
    drop(db);

    let db = open(&storage.reopen(), &small(Plan::silt_deep()));
    let items = db.keyspace("items").unwrap();
    assert!(db.is_changing_plan());
    check(&items, &contents, KEYS, "after the crash");
    db.wait_idle().unwrap();
    assert!(!db.is_changing_plan());
    check(&items, &contents, KEYS, "in the end");
}

#[test]
fn a_snapshot_keeps_what_it_had_and_space_comes_back() {
    let storage = SimulatedStorage::new(9);
    let db = open(&storage, &small(Plan::tiered()));
    let items = db.keyspace("items").unwrap();
    let mut contents = Contents::new();
    write(&items, &mut contents, 0..9000, KEYS);
    db.wait_idle().unwrap();
    let snapshot = db.snapshot().unwrap();
    let then = contents.clone();
    db.change_plan(small(Plan::lsm_trie())).unwrap();
    db.change_plan(small(Plan::silt())).unwrap();
    write(&items, &mut contents, 9000..12_000, KEYS);
    db.wait_idle().unwrap();
    check(&items, &contents, KEYS, "after two changes");
    let held = snapshot.keyspace("items").unwrap();
    for number in 0..KEYS {
        let key = key(number);
        assert_eq!(held.get(&key).unwrap().as_deref(), then.get(&key).map(Vec::as_slice));
    }
    drop(held);
    drop(snapshot);
    db.compact().unwrap();
    let live: usize = contents.iter().map(|(key, value)| key.len() + value.len()).sum();
    let tables: u64 = db.stats().levels[1..].iter().map(|level| level.bytes).sum();
    assert!(tables < 2 * live as u64, "{tables} bytes of tables for {live} of items");
    let names = db.stats().levels.iter().map(|level| level.tables).sum::<usize>();
    let on_disk = alluvium_io::Storage::list(&storage).unwrap();
    let files = on_disk.iter().filter(|name| name.starts_with("table-")).count();
    assert!(files <= names, "{files} files of {names} tables");
}

#[test]
fn semi_sorted_keyspaces_change_among_plans_that_suit_them() {
    let storage = SimulatedStorage::new(11);
    let db = open(&storage, &small(Plan::silt()));
    let options = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'-' });
    let items = db.keyspace_with("items", &options.with_plan(small(Plan::semi_sorted()))).unwrap();
    let mut contents = Contents::new();
    write(&items, &mut contents, 0..9000, KEYS);
    while db.run_background_job().unwrap() {}
    // The database's plan does not suit the keyspace, which keeps its own.
    db.change_plan(small(Plan::tiered())).unwrap();
    assert_eq!(items.plan(), small(Plan::semi_sorted()));
    assert!(items.change_plan(&small(Plan::tiered())).is_err());
    let Plan::Levels(LevelsPlan { sharding, log, mut levels }) = small(Plan::semi_sorted()) else {
        unreachable!()
    };
    levels[0].filter = alluvium_model::Filter::Cuckoo { tag_bits: 8 };
    let last = levels[levels.len() - 1];
    levels.insert(1, alluvium_model::LevelSpec { growth: levels[0].growth, ..last });
    let deeper = Plan::Levels(LevelsPlan { sharding, log, levels });
    items.change_plan(&deeper).unwrap();
    check(&items, &contents, KEYS, "at once");
    assert_eq!(items.scan_prefix("key").unwrap().count(), contents.len());
    write(&items, &mut contents, 9000..12_000, KEYS);
    db.wait_idle().unwrap();
    check(&items, &contents, KEYS, "in the end");
    assert_eq!(items.scan_prefix("key").unwrap().count(), contents.len());
    items.change_plan(&small(Plan::semi_sorted())).unwrap();
    db.wait_idle().unwrap();
    check(&items, &contents, KEYS, "back again");
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_plan_that_was_outgrown_is_made_anew_once() {
    let storage = SimulatedStorage::new(13);
    let open = || {
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: 5,
            ..Environment::over(Arc::new(storage.reopen()))
        };
        let builder = Db::builder("growing").expected_items(60_000).background(false);
        builder.durability(Durability::Buffered).environment(environment).open().unwrap()
    };
    let db = open();
    let items = db.keyspace("items").unwrap();
    let first = items.plan();
    let put = |range: std::ops::Range<u32>| {
        for number in range {
            items.insert(key(number), number.to_le_bytes()).unwrap();
        }
        while db.run_background_job().unwrap() {}
    };
    put(0..60_000);
    assert!(db.stats().plan_decisions.is_empty() && items.plan() == first);
    put(60_000..160_000);
    let decisions = db.stats().plan_decisions;
    assert_eq!(decisions.len(), 1);
    let decision = &decisions[0];
    assert!(decision.items >= 100_000 && decision.items_planned == 2 * decision.items, "{decision:?}");
    assert!(decision.item_bytes < 20.0 && decision.best.is_some(), "{decision:?}");
    assert_eq!(decision.is_changed, items.plan() != first);
    assert!(!db.is_changing_plan());
    put(160_000..180_000);
    assert_eq!(db.stats().plan_decisions, decisions);
    for number in (0..180_000).step_by(97) {
        assert_eq!(items.get(key(number)).unwrap().as_deref(), Some(&number.to_le_bytes()[..]));
    }
    let plan = items.plan();
    drop(items);
    db.close().unwrap();
    // The number of items for which the plan was made is stored.
    let db = open();
    let items = db.keyspace("items").unwrap();
    while db.run_background_job().unwrap() {}
    assert!(db.stats().plan_decisions.is_empty() && items.plan() == plan);
    // A plan that was chosen is kept until a new choice is requested.
    db.change_plan(Plan::silt()).unwrap();
    while db.run_background_job().unwrap() {}
    assert!(db.stats().plan_decisions.is_empty() && items.plan() == Plan::silt());
    db.change_plan(alluvium::PlanChoice::Auto).unwrap();
    while db.run_background_job().unwrap() {}
    assert_eq!(db.stats().plan_decisions.len(), 1);
}
