//! Dense tries with fragments, and changes of the index alone, which write nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Keyspace, LevelsPlan, Plan};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use alluvium_model::{Filter, Index};

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u32 = 4000;
const ABSENT: u32 = 4000;

/// SILT, small, with this filter and index of the sorted run.
fn plan(filter: Filter, index: Index) -> Plan {
    let LevelsPlan { mut sharding, mut log, mut levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 128;
    sharding.items_per_shard = 1000;
    sharding.shards_max = 4;
    log.segment_bytes_max = 128 << 10;
    (levels[1].filter, levels[1].index) = (filter, index);
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn dense(bits: u32) -> Plan {
    plan(Filter::Fragments { bits }, Index::TrieDense)
}

/// Plans that differ in index only, or in the fragments that belong to it.
fn plans() -> Vec<Plan> {
    vec![
        plan(Filter::None, Index::Fences),
        dense(8),
        plan(Filter::None, Index::Trie),
        plan(Filter::None, Index::TrieDense),
        dense(3),
    ]
}

fn open(storage: &SimulatedStorage, plan: &Plan) -> Db {
    let environment = Environment {
        clock: Arc::new(SimulatedClock::default()),
        random_seed: 5,
        ..Environment::over(Arc::new(storage.clone()))
    };
    let builder = Db::builder("dense").plan(plan.clone()).background(false);
    let builder = builder.durability(Durability::Sync).row_cache_bytes_max(0).table_sizes(16 << 10, 64 << 10);
    builder.environment(environment).open().unwrap()
}

fn key(number: u32) -> Vec<u8> {
    format!("key-{number}").into_bytes()
}

/// Items of `value_bytes` bytes of value, all in sorted tables.
fn load(db: &Db, value_bytes: usize) -> (Keyspace, Contents) {
    let keyspace = db.keyspace("items").unwrap();
    let mut contents = Contents::new();
    for number in 0..KEYS {
        let value = format!("{number} {}", "x".repeat(value_bytes)).into_bytes();
        keyspace.insert(key(number), &value).unwrap();
        contents.insert(key(number), value);
    }
    db.compact().unwrap();
    (keyspace, contents)
}

fn check(keyspace: &Keyspace, contents: &Contents, what: &str) {
    for number in 0..KEYS {
        let key = key(number);
        assert_eq!(keyspace.get(&key).unwrap().as_deref(), contents.get(&key).map(Vec::as_slice), "{what}");
    }
    for number in 0..50 {
        assert_eq!(keyspace.get(format!("absent {number}")).unwrap(), None, "{what}");
    }
}

/// Leaves pages in memory, so that gets are no longer counted.
fn check_iteration(keyspace: &Keyspace, contents: &Contents) {
    let found: Contents = keyspace
        .iter()
        .map(|item| item.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap())
        .collect();
    assert!(found == *contents);
}

/// Reads of the storage for all present keys, and for absent ones, when indexes are loaded.
fn reads(storage: &SimulatedStorage, keyspace: &Keyspace) -> (u64, u64) {
    let all = |prefix: &str, count| {
        (0..count).for_each(|number| drop(keyspace.get(format!("{prefix}{number}")).unwrap()));
    };
    all("key-", KEYS);
    let start = storage.read_count();
    all("key-", KEYS);
    let present = storage.read_count() - start;
    all("absent ", ABSENT);
    (present, storage.read_count() - start - present)
}

/// Bytes written to tables, and by the manifest.
fn written(db: &Db) -> (u64, u64) {
    let traffic = db.stats().traffic;
    (traffic.hash_bytes_written + traffic.sorted_bytes_written, traffic.manifest_bytes_written)
}

#[test]
fn fragments_answer_absent_keys() {
    for (bits, most) in [(3, 700), (8, 35)] {
        let storage = SimulatedStorage::new(3);
        let db = open(&storage, &dense(bits));
        let (keyspace, contents) = load(&db, 60);
        check(&keyspace, &contents, "loaded");
        let (present, absent) = reads(&storage, &keyspace);
        assert_eq!(present, u64::from(KEYS), "one read for each present key");
        assert!(absent <= most, "{absent} reads for {ABSENT} absent keys with {bits} bits");
        drop((keyspace, db));
        let db = open(&storage, &dense(bits));
        let keyspace = db.keyspace("items").unwrap();
        assert_eq!(reads(&storage, &keyspace), (present, absent), "stored with the tables");
        assert_eq!(db.stats().memory_limit.indexes_made, 0);
        check_iteration(&keyspace, &contents);
        assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn a_change_of_index_alone_writes_a_record_of_the_manifest() {
    for from in plans() {
        let storage = SimulatedStorage::new(3);
        let db = open(&storage, &from);
        let (keyspace, contents) = load(&db, 60);
        for to in plans().into_iter().filter(|to| *to != from) {
            let what = format!("{from} to {to}");
            let before = written(&db);
            db.change_plan(to.clone()).unwrap();
            check(&keyspace, &contents, &what);
            let mut rounds = 0;
            while db.run_background_job().unwrap() {
                rounds += 1;
                if rounds % 3 == 1 {
                    check(&keyspace, &contents, &what);
                }
            }
            let after = written(&db);
            assert_eq!(after.0, before.0, "{what}: no table is written");
            assert!(after.1 - before.1 < 4096, "{what}: {} bytes of manifest", after.1 - before.1);
            assert!(!db.is_changing_plan() && db.stats().memory_limit.indexes_left == 0, "{what}");
            check(&keyspace, &contents, &what);
            let (present, absent) = reads(&storage, &keyspace);
            let once = u64::from(KEYS)..=u64::from(KEYS + KEYS / 20);
            assert!(once.contains(&present), "{what}: {present} reads");
            let absent_max = match &to {
                to if *to == dense(8) => 35,
                to if *to == dense(3) => 700,
                _ => u64::from(ABSENT + ABSENT / 20),
            };
            assert!(absent <= absent_max, "{what}: {absent} reads for absent keys");
            assert!(db.stats().memory_limit.indexes_made > 0);
            assert_eq!(db.verify().unwrap().problems, Vec::<String>::new(), "{what}");
            db.change_plan(from.clone()).unwrap();
            while db.run_background_job().unwrap() {}
            check(&keyspace, &contents, &what);
        }
        check_iteration(&keyspace, &contents);
    }
}

#[test]
fn an_index_is_made_again_after_a_crash_and_merges_store_it() {
    let storage = SimulatedStorage::new(3);
    let db = open(&storage, &plan(Filter::None, Index::Fences));
    let (keyspace, mut contents) = load(&db, 60);
    db.change_plan(dense(8)).unwrap();
    while db.run_background_job().unwrap() {}
    let (_, absent) = reads(&storage, &keyspace);
    assert!(absent <= 35, "{absent} reads");
    storage.crash();
    drop((keyspace, db));
    let crashed = storage.reopen();

    let db = open(&crashed, &dense(8));
    let keyspace = db.keyspace("items").unwrap();
    check(&keyspace, &contents, "stored fences serve until then");
    assert!(db.stats().memory_limit.indexes_left > 0);
    let before = written(&db);
    while db.run_background_job().unwrap() {}
    assert_eq!(written(&db).0, before.0);
    let (present, absent) = reads(&crashed, &keyspace);
    assert!(absent <= 35 && present <= u64::from(KEYS + KEYS / 20), "{present} and {absent} reads");
    check(&keyspace, &contents, "made again");

    for number in 0..KEYS {
        keyspace.insert(key(number), b"new").unwrap();
        contents.insert(key(number), b"new".to_vec());
    }
    db.compact().unwrap();
    check(&keyspace, &contents, "merged");
    drop((keyspace, db));
    let db = open(&crashed, &dense(8));
    let keyspace = db.keyspace("items").unwrap();
    check(&keyspace, &contents, "opened");
    check_iteration(&keyspace, &contents);
    let limit = db.stats().memory_limit;
    assert_eq!((limit.indexes_made, limit.indexes_left), (0, 0), "merges stored the new index");
}

#[test]
fn where_memory_is_short_the_stored_index_serves() {
    let storage = SimulatedStorage::new(3);
    let db = open(&storage, &plan(Filter::None, Index::Fences));
    let (keyspace, contents) = load(&db, 60);
    check(&keyspace, &contents, "loaded");
    let memory = db.stats().memory;
    db.set_index_bytes_max(memory.tables + memory.indexes + memory.filters + 512);
    db.change_plan(dense(12)).unwrap();
    while db.run_background_job().unwrap() {}
    let limit = db.stats().memory_limit;
    assert_eq!((limit.indexes_made, limit.indexes_left), (0, 0));
    check(&keyspace, &contents, "no room");
    db.set_index_bytes_max(u64::MAX);
    assert!(db.stats().memory_limit.indexes_left > 0);
    while db.run_background_job().unwrap() {}
    let (_, absent) = reads(&storage, &keyspace);
    assert!(absent <= 10, "{absent} reads");
    db.set_index_bytes_max(0);
    check(&keyspace, &contents, "nothing in memory");
    while db.run_background_job().unwrap() {}
    db.set_index_bytes_max(u64::MAX);
    while db.run_background_job().unwrap() {}
    check(&keyspace, &contents, "room again");
    assert!(reads(&storage, &keyspace).1 <= 10);
}

#[test]
fn fences_for_items_that_go_on_are_written() {
    let storage = SimulatedStorage::new(3);
    let db = open(&storage, &dense(8));
    let (keyspace, contents) = load(&db, 900);
    let before = written(&db).0;
    db.change_plan(plan(Filter::None, Index::Trie)).unwrap();
    while db.run_background_job().unwrap() {}
    assert_eq!(written(&db).0, before);
    check(&keyspace, &contents, "a sparse trie");
    db.change_plan(plan(Filter::None, Index::Fences)).unwrap();
    while db.run_background_job().unwrap() {}
    assert!(written(&db).0 > before, "tables are cut for fences");
    check(&keyspace, &contents, "fences");
}
