//! Semi-sorted keyspaces compared with a map: skewed prefixes, through conversion, merging and reopening.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium::{
    Db, Durability, Environment, Error, Keyspace, KeyspaceOptions, LevelsPlan, Order, Plan, PrefixFunction,
    PrefixRule,
};
use alluvium_io::{OpenMode, SimulatedClock, SimulatedStorage, Storage as _};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SLASH: PrefixRule = PrefixRule::Delimiter { byte: b'/' };

fn level(growth: Growth, filter: Filter) -> LevelSpec {
    LevelSpec { growth, table: TableLayout::Sorted, filter, index: Index::ThreeLevel }
}

fn tiering(runs_max: u32) -> LevelSpec {
    level(Growth::Tiering { runs_max, share: Growth::ANY_SHARE }, Filter::Cuckoo { tag_bits: 12 })
}

fn leveling(ratio: f64, filter: Filter) -> LevelSpec {
    level(Growth::Leveling { ratio }, filter)
}

/// A plan with small sizes, so that a few thousand items go through all levels.
fn small(levels: Vec<LevelSpec>) -> Plan {
    let LevelsPlan { mut sharding, mut log, .. } = LevelsPlan::semi_sorted();
    sharding.log_entries_per_shard = 128;
    sharding.items_per_shard = 512;
    log.segment_bytes_max = 128 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

/// Half of the keys have one prefix, the rest few each.
fn key(rng: &mut StdRng) -> Vec<u8> {
    let prefix = if rng.random() { 0 } else { rng.random_range(0..200u32).pow(2) / 200 };
    let suffix = rng.random_range(0..if prefix == 0 { 1500 } else { 20 });
    format!("dir{prefix}/{suffix}").into_bytes()
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

fn of_prefix(map: &Map, prefix: &str) -> Map {
    let prefix = format!("{prefix}/").into_bytes();
    map.iter()
        .filter(|(key, _)| key.starts_with(&prefix))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

fn scanned(items: &Keyspace, prefix: &str) -> Map {
    let found: Vec<_> = items.scan_prefix(prefix).unwrap().collect::<Result<_, _>>().unwrap();
    let map: Map = found.iter().cloned().collect();
    assert_eq!(map.len(), found.len(), "a key came twice");
    map
}

/// Lists the prefixes from `start` on, also those of a snapshot.
fn listed_prefixes(db: &Db, items: &Keyspace, start: &str) -> Vec<Vec<u8>> {
    let listed: Vec<_> = items.prefixes_from(start).unwrap().collect::<Result<_, _>>().unwrap();
    let snapshot = db.snapshot().unwrap().keyspace("items").unwrap();
    let again: Vec<_> = snapshot.prefixes_from(start).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(listed, again);
    listed
}

fn prefixes_of(map: &Map, start: &str) -> Vec<Vec<u8>> {
    let prefixes = map.keys().filter_map(|key| key.split(|&byte| byte == b'/').next());
    let set: BTreeSet<_> =
        prefixes.filter(|prefix| *prefix >= start.as_bytes()).map(<[u8]>::to_vec).collect();
    set.into_iter().collect()
}

fn agrees_with_a_map(levels: Vec<LevelSpec>) {
    let storage = SimulatedStorage::new(3);
    let open = || {
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: 5,
            ..Environment::over(Arc::new(storage.clone()))
        };
        let builder = Db::builder("semi-sorted").background(false).durability(Durability::Buffered);
        let db = builder.table_sizes(4 << 10, 32 << 10).environment(environment).open().unwrap();
        let options = KeyspaceOptions::semi_sorted(SLASH).with_listed_prefixes();
        let options = options.with_plan(small(levels.clone()));
        let items = db.keyspace_with("items", &options).unwrap();
        (db, items)
    };
    let mut rng = StdRng::seed_from_u64(1);
    let mut model = Map::new();
    let (mut db, mut items) = open();
    for step in 0..20_000u32 {
        let key = key(&mut rng);
        match rng.random_range(0..100) {
            0..70 => {
                let value = vec![step as u8; rng.random_range(0..150)];
                items.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            70..85 => {
                items.remove(&key).unwrap();
                model.remove(&key);
            }
            85..95 => assert_eq!(items.get(&key).unwrap().as_ref(), model.get(&key)),
            95..97 => {
                let prefix = format!("dir{}", rng.random_range(0..20));
                assert_eq!(scanned(&items, &prefix), of_prefix(&model, &prefix));
                if step % 20 == 0 {
                    assert_eq!(listed_prefixes(&db, &items, &prefix), prefixes_of(&model, &prefix));
                }
            }
            97 => {
                // Those of the first prefix do not fit in a batch.
                let prefix = if rng.random_range(0..10) == 0 { 0 } else { rng.random_range(1..200) };
                let prefix = format!("dir{prefix}");
                items.delete_prefix(&prefix).unwrap();
                of_prefix(&model, &prefix).keys().for_each(|key| drop(model.remove(key)));
            }
            _ => drop(db.run_background_job().unwrap()),
        }
        if step % 6_000 == 5_999 {
            let all: Map = items.iter().collect::<Result<_, _>>().unwrap();
            assert_eq!(all, model, "at step {step}");
            drop(items);
            db.close().unwrap();
            (db, items) = open();
        }
    }
    db.compact().unwrap();
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    for prefix in 0..200 {
        let prefix = format!("dir{prefix}");
        assert_eq!(scanned(&items, &prefix), of_prefix(&model, &prefix));
    }
    assert_eq!(listed_prefixes(&db, &items, ""), prefixes_of(&model, ""));
    assert!(model.iter().all(|(key, value)| items.get(key).unwrap().as_ref() == Some(value)));
}

#[test]
fn tiering_levels_agree_with_a_map() {
    agrees_with_a_map(vec![tiering(2), tiering(3), tiering(3)]);
}

#[test]
fn leveling_levels_agree_with_a_map() {
    let filtered = leveling(2.0, Filter::Cuckoo { tag_bits: 12 });
    agrees_with_a_map(vec![tiering(2), filtered, leveling(2.0, Filter::None)]);
}

#[test]
fn the_mixed_layout_agrees_with_a_map() {
    agrees_with_a_map(vec![tiering(2), tiering(2), leveling(2.0, Filter::None)]);
}

#[test]
fn orders_are_fixed_and_keys_have_prefixes() {
    let directory = tempfile::tempdir().unwrap();
    let three = PrefixRule::Length { bytes: 3 };
    let half = PrefixFunction::new("half", |key| key.len() / 2).unwrap();
    let open = |functions: &[PrefixFunction]| {
        let builder = Db::builder(directory.path()).background(false);
        functions.iter().fold(builder, |builder, &function| builder.prefix_function(function)).open()
    };
    let db = open(&[half]).unwrap();
    let items = db.keyspace_with("items", &KeyspaceOptions::semi_sorted(three)).unwrap();
    assert_eq!(items.order(), Order::SemiSorted { prefix: three, lists_prefixes: false });
    assert!(matches!(items.insert("ab", "c"), Err(Error::KeyWithoutPrefix { len: 2, .. })));
    assert!(matches!(items.insert([b'k'; 1025], "c"), Err(Error::KeyTooLarge { len: 1025, max: 1024 })));
    let mut batch = db.batch();
    batch.insert(&items, "ab", "c");
    assert!(matches!(batch.commit(), Err(Error::KeyWithoutPrefix { .. })));
    assert_eq!(items.get("ab").unwrap(), None);
    items.insert("abc", "d").unwrap();
    let again = db.keyspace_with("items", &KeyspaceOptions::semi_sorted(SLASH));
    assert!(matches!(again, Err(Error::KeyspaceOrder { .. })));
    assert_eq!(db.keyspace("items").unwrap().get("abc").unwrap().unwrap(), b"d");
    let plain = db.keyspace("plain").unwrap();
    assert!(matches!(plain.scan_prefix("a"), Err(Error::NotSemiSorted { .. })));
    let fenced = KeyspaceOptions::semi_sorted(three).with_plan(Plan::leveled());
    let refused = db.keyspace_with("fenced", &fenced).unwrap_err();
    assert!(refused.to_string().contains("uniform"), "{refused}");
    let halves =
        db.keyspace_with("halves", &KeyspaceOptions::semi_sorted(PrefixRule::Function(half))).unwrap();
    halves.insert("aabb", "1").unwrap();
    halves.insert("aacc", "2").unwrap();
    db.flush().unwrap();
    assert_eq!(scanned(&halves, "aa").len(), 2);
    drop((db, items, plain, halves));
    let other = PrefixFunction::new("third", |key| key.len() / 3).unwrap();
    for functions in [&[][..], &[other]] {
        assert!(matches!(open(functions), Err(Error::PrefixFunction { function, .. }) if function == "half"));
    }
    let halves = open(&[other, half]).unwrap().keyspace("halves").unwrap();
    assert_eq!(scanned(&halves, "aa").len(), 2);
}

/// One prefix has all items: no table has more than its share, and the log's shards fill evenly.
#[test]
fn one_prefix_makes_no_hot_container() {
    let storage = SimulatedStorage::new(3);
    let environment = Environment {
        clock: Arc::new(SimulatedClock::default()),
        random_seed: 5,
        ..Environment::over(Arc::new(storage.clone()))
    };
    let builder = Db::builder("one prefix").background(false).durability(Durability::Buffered);
    let db = builder.table_sizes(8 << 10, 64 << 10).environment(environment).open().unwrap();
    let Plan::Levels(LevelsPlan { mut sharding, log, levels }) =
        small(vec![tiering(2), tiering(3), tiering(3)])
    else {
        unreachable!()
    };
    (sharding.items_per_shard, sharding.shards_max) = (500, 8);
    let options = KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: 3 });
    let items = db
        .keyspace_with("items", &options.with_plan(Plan::Levels(LevelsPlan { sharding, log, levels })))
        .unwrap();
    const COUNT: u32 = 40_000;
    for number in 0..COUNT {
        items.insert(format!("one{number}"), [7; 60]).unwrap();
        if number % 500 == 0 {
            db.wait_idle().unwrap();
        }
    }
    db.wait_idle().unwrap();
    assert_eq!(items.scan_prefix("one").unwrap().count() as u32, COUNT);
    db.compact().unwrap();
    let tables: Vec<u64> = storage
        .list()
        .unwrap()
        .iter()
        .filter(|name| name.starts_with("table-"))
        .map(|name| storage.open(name, OpenMode::Read).unwrap().len().unwrap())
        .collect();
    let all: u64 = tables.iter().sum();
    assert!(all > 40 * (64 << 10), "{all} bytes");
    assert!(tables.iter().all(|&bytes| bytes < 3 * (64 << 10)), "{tables:?}");
    assert!(tables.len() as u64 <= 3 * all / (64 << 10), "{} tables of {all} bytes", tables.len());
    assert!((0..COUNT).step_by(97).all(|number| items.get(format!("one{number}")).unwrap().is_some()));
    items.delete_prefix("one").unwrap();
    assert_eq!(items.iter().count(), 0);
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    let left = storage.list().unwrap().iter().filter(|name| name.starts_with("table-")).count();
    assert!(left <= 3, "{left} tables of nothing");
}

#[test]
fn items_are_ingested_repaired_and_found_again() {
    let storage = SimulatedStorage::new(3);
    let environment = || Environment {
        clock: Arc::new(SimulatedClock::default()),
        random_seed: 5,
        ..Environment::over(Arc::new(storage.clone()))
    };
    let open = || {
        let builder = Db::builder("ingested").background(false).ingest_sort_bytes_max(8 << 10);
        let db = builder.table_sizes(4 << 10, 32 << 10).environment(environment()).open().unwrap();
        let options = KeyspaceOptions::semi_sorted(SLASH).with_plan(small(vec![tiering(2), tiering(3)]));
        let items = db.keyspace_with("items", &options).unwrap();
        (db, items)
    };
    let mut rng = StdRng::seed_from_u64(2);
    let mut model = Map::new();
    let (db, items) = open();
    let mut ingest = items.ingest().unwrap();
    for number in 0..6_000u32 {
        let (key, value) = (key(&mut rng), number.to_le_bytes().to_vec());
        ingest.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    ingest.finish().unwrap();
    for number in 0..500u32 {
        let (key, value) = (key(&mut rng), vec![number as u8; 40]);
        items.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    db.flush().unwrap();
    items.delete_prefix("dir1").unwrap();
    items.delete_prefix("dir0").unwrap();
    model.retain(|key, _| !key.starts_with(b"dir1/") && !key.starts_with(b"dir0/"));
    let agrees = |items: &Keyspace| {
        for prefix in 0..200 {
            let prefix = format!("dir{prefix}");
            assert_eq!(scanned(items, &prefix), of_prefix(&model, &prefix), "{prefix}");
        }
        assert_eq!(items.iter().collect::<Result<Map, _>>().unwrap(), model);
    };
    agrees(&items);
    let snapshot = db.snapshot().unwrap();
    items.delete_prefix("dir2").unwrap();
    let found = snapshot.keyspace("items").unwrap().scan_prefix("dir2").unwrap();
    assert_eq!(found.collect::<Result<Map, _>>().unwrap(), of_prefix(&model, "dir2"));
    drop((snapshot, items));
    db.close().unwrap();
    model.retain(|key, _| !key.starts_with(b"dir2/"));
    let manifests: Vec<String> =
        storage.list().unwrap().into_iter().filter(|name| name.starts_with("manifest-")).collect();
    manifests.iter().for_each(|name| storage.remove(name).unwrap());
    storage.sync_directory().unwrap();
    let report = alluvium::repair_in(environment(), &alluvium::RepairOptions::default()).unwrap();
    assert!(report.changed);
    let db = Db::builder("ingested").background(false).environment(environment()).open().unwrap();
    let items = db.keyspace(&db.keyspace_names()[0]).unwrap();
    assert_eq!(items.order(), Order::SemiSorted { prefix: SLASH, lists_prefixes: false });
    let found: Map = items.iter().collect::<Result<_, _>>().unwrap();
    assert!(model.iter().all(|(key, value)| found.get(key) == Some(value)));
}
