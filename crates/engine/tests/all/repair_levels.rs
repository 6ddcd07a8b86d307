//! Repair of databases with many levels: without a manifest, and with tables that were merged away long ago.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Db, Environment, LevelsPlan, ManifestRepair, Plan, RepairOptions, repair_in};
use alluvium_io::{OpenMode, SimulatedClock, SimulatedStorage, Storage as _};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Contents = BTreeMap<String, Vec<u8>>;
type Items = BTreeMap<Vec<u8>, Vec<u8>>;

fn level(growth: Growth) -> LevelSpec {
    let filter = Filter::Cuckoo { tag_bits: 10 };
    LevelSpec { growth, table: TableLayout::Sorted, filter, index: Index::Fences }
}

fn tiering(runs_max: u32) -> LevelSpec {
    level(Growth::Tiering { runs_max, share: Growth::ANY_SHARE })
}

fn leveling(ratio: f64) -> LevelSpec {
    level(Growth::Leveling { ratio })
}

fn of_hash() -> LevelSpec {
    let LevelsPlan { levels, .. } = LevelsPlan::silt();
    LevelSpec { growth: tiering(2).growth, ..levels[0] }
}

fn small(levels: Vec<LevelSpec>) -> Plan {
    let LevelsPlan { mut sharding, mut log, .. } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 64;
    sharding.items_per_shard = 300;
    sharding.shards_max = 4;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn environment(storage: SimulatedStorage) -> Environment {
    let clock = Arc::new(SimulatedClock::default());
    Environment { clock, random_seed: 5, ..Environment::over(Arc::new(storage)) }
}

fn open(storage: SimulatedStorage, plan: &Plan) -> Db {
    let builder = Db::builder("levels").plan(plan.clone()).background(false).table_sizes(4 << 10, 12 << 10);
    builder.environment(environment(storage)).open().unwrap()
}

/// A closed database with something in every level, its content, and all table files that it ever had.
fn sample(plan: &Plan, seed: u64) -> (Contents, Items, Contents) {
    let storage = SimulatedStorage::new(seed);
    let db = open(storage.clone(), plan);
    let keyspace = db.keyspace("items").unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut items, mut tables) = (Items::new(), Contents::new());
    let mut occupied = vec![false; db.stats().levels.len()];
    for step in 0..10_000u32 {
        let key = format!("key-{}", rng.random_range(0..4500)).into_bytes();
        if rng.random_range(0..4) == 0 {
            keyspace.remove(&key).unwrap();
            items.remove(&key);
        } else {
            let value = format!("value {step} {}", "x".repeat(rng.random_range(0..60))).into_bytes();
            keyspace.insert(&key, &value).unwrap();
            items.insert(key, value);
        }
        if step % 40 == 0 {
            while db.run_background_job().unwrap() {
                for name in storage.list().unwrap().into_iter().filter(|name| name.starts_with("table-")) {
                    tables.entry(name).or_insert_with_key(|name| read_whole(&storage, name));
                }
            }
            let levels = db.stats().levels;
            occupied.iter_mut().zip(levels).for_each(|(occupied, level)| *occupied |= level.items > 0);
        }
    }
    assert!(occupied.iter().all(|&occupied| occupied), "{occupied:?}");
    drop(keyspace);
    db.close().unwrap();
    let contents = storage.contents();
    tables.extend(contents.clone().into_iter().filter(|(name, _)| name.starts_with("table-")));
    (contents, items, tables)
}

fn read_whole(storage: &SimulatedStorage, name: &str) -> Vec<u8> {
    let file = storage.open(name, OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

fn items_of(contents: &Contents, plan: &Plan) -> Items {
    let db = open(SimulatedStorage::from_contents(9, contents), plan);
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    let names = db.keyspace_names();
    assert_eq!(names.len(), 1, "{names:?}");
    db.keyspace(&names[0]).unwrap().iter().map(Result::unwrap).collect()
}

fn repaired(contents: &Contents, plan: &Plan) -> (ManifestRepair, Contents) {
    let storage = SimulatedStorage::from_contents(3, contents);
    let options = RepairOptions { plan: plan.clone(), ..RepairOptions::default() };
    let report = repair_in(environment(storage.clone()), &options).unwrap();
    (report.manifest, storage.contents())
}

fn is_manifest(name: &str) -> bool {
    name == "CURRENT" || name.starts_with("manifest-")
}

#[test]
fn tables_of_all_levels_are_placed_without_a_manifest() {
    let plans = [
        small(vec![of_hash(), tiering(2), tiering(3)]),
        small(vec![tiering(2), leveling(1.5), leveling(2.0), leveling(2.0)]),
        small(vec![of_hash(), tiering(3), leveling(1.5), tiering(2)]),
    ];
    for (seed, plan) in (1..).zip(&plans) {
        let (contents, items, tables) = sample(plan, seed);
        assert_eq!(items_of(&contents, plan), items);
        let mut lost = contents.clone();
        lost.retain(|name, _| !is_manifest(name));
        // Only a plan of two levels is known: the tables show how many there were.
        let (manifest, after) = repaired(&lost, &Plan::silt());
        assert_eq!(manifest, ManifestRepair::Rebuilt);
        assert!(items_of(&after, plan) == items, "plan {seed}");
        // What was merged away does not reappear, even if its tables still exist.
        let mut beside = tables.clone();
        beside.extend(lost);
        assert!(beside.len() > contents.len() + 20, "{} tables", beside.len());
        let (_, after) = repaired(&beside, &Plan::silt());
        assert!(items_of(&after, plan) == items, "plan {seed} beside old tables");
    }
}

#[test]
fn a_damaged_table_of_any_level_costs_its_own_items_only() {
    let plan = small(vec![of_hash(), tiering(2), leveling(1.5), tiering(3)]);
    let (contents, items, _) = sample(&plan, 7);
    for table in contents.keys().filter(|name| name.starts_with("table-")) {
        let mut damaged = contents.clone();
        damaged.get_mut(table).unwrap()[4096 + 60] ^= 0x55;
        let (manifest, after) = repaired(&damaged, &plan);
        assert_eq!(manifest, ManifestRepair::Sound);
        let found = items_of(&after, &plan);
        let differing = items.iter().filter(|(key, value)| found.get(*key) != Some(value)).count();
        assert!(differing <= 200, "{table}: {differing} of {} items", items.len());
    }
}

#[test]
fn tables_are_placed_without_a_manifest_in_the_midst_of_a_change_of_plan() {
    let plans = [
        small(vec![of_hash(), tiering(2), tiering(3)]),
        small(vec![tiering(2), leveling(1.5), leveling(2.0), leveling(2.0)]),
        small(vec![of_hash(), leveling(1.5)]),
    ];
    let changes = [(0, 1, 11), (1, 0, 11), (1, 0, 20), (1, 0, 40), (1, 2, 11), (2, 1, 11)];
    for (from, to, seed) in changes {
        let what = format!("plan {from} to {to}, seed {seed}");
        let (contents, mut items, _) = sample(&plans[from], seed + from as u64);
        let storage = SimulatedStorage::from_contents(5, &contents);
        let db = open(storage.clone(), &plans[to]);
        let keyspace = db.keyspace("items").unwrap();
        assert!(db.is_changing_plan(), "{what}");
        let mut jobs = 0;
        for step in 0..100_000u32 {
            let key = format!("key-{}", step * 7 % 4500).into_bytes();
            keyspace.insert(&key, format!("later {step}")).unwrap();
            items.insert(key, format!("later {step}").into_bytes());
            if step % 10 == 0 && db.run_background_job().unwrap() {
                jobs += 1;
            }
            // Some tables have been rewritten, and others have not.
            if jobs == 2 || !db.is_changing_plan() {
                break;
            }
        }
        assert!(db.is_changing_plan(), "{what}");
        db.persist().unwrap();
        storage.kill();
        drop(keyspace);
        let mut lost = storage.contents();
        lost.retain(|name, _| !is_manifest(name));
        let (manifest, after) = repaired(&lost, &plans[to]);
        assert_eq!(manifest, ManifestRepair::Rebuilt);
        assert!(items_of(&after, &plans[to]) == items, "{what}");
    }
}
