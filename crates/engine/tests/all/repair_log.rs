//! Repair without a manifest, when nothing in tables shows which part of the log they replace.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Iter, LevelsPlan, Plan, RepairOptions, repair_in};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Contents = BTreeMap<String, Vec<u8>>;
type Items = BTreeMap<Vec<u8>, Vec<u8>>;

fn plan() -> Plan {
    let LevelsPlan { sharding, mut log, levels } = LevelsPlan::silt();
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn environment(storage: &SimulatedStorage) -> Environment {
    let clock = Arc::new(SimulatedClock::default());
    Environment { clock, random_seed: 5, ..Environment::over(Arc::new(storage.clone())) }
}

fn open(storage: &SimulatedStorage) -> Db {
    let builder = Db::builder("log").plan(plan()).background(false).durability(Durability::Buffered);
    builder.environment(environment(storage)).open().unwrap()
}

/// The items that a repair finds without the manifest.
fn repaired(mut contents: Contents) -> Items {
    contents.retain(|name, _| name != "CURRENT" && !name.starts_with("manifest-"));
    let storage = SimulatedStorage::from_contents(3, &contents);
    let options = RepairOptions { plan: plan(), ..RepairOptions::default() };
    let report = repair_in(environment(&storage), &options).unwrap();
    assert_eq!((report.segments_lost, report.tables_lost, report.items_lost), (0, 0, 0), "{report:?}");
    let db = open(&storage);
    let names = db.keyspace_names();
    assert!(names.len() <= 1, "{names:?}");
    let items = names.first().map(|name| db.keyspace(name).unwrap());
    items.iter().flat_map(|items| items.iter().map(Result::unwrap)).collect()
}

/// Merges that leave nothing leave no table either. A file of the log that has items of long ago must not be found
/// then, after the file with their tombstones was used again.
#[test]
fn what_was_removed_stays_gone_without_a_manifest() {
    for seed in 0..60 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut storage = SimulatedStorage::new(seed);
        let mut db = open(&storage);
        let mut keyspace = db.keyspace("items").unwrap();
        let mut items = Items::new();
        let mut iterators: Vec<Iter> = Vec::new();
        for step in 0..200_u32 {
            match rng.random_range(0..16) {
                0..3 => {
                    let key = vec![rng.random_range(0..2)];
                    keyspace.insert(&key, step.to_le_bytes()).unwrap();
                    items.insert(key, step.to_le_bytes().to_vec());
                }
                3..8 => {
                    let key = vec![rng.random_range(0..2)];
                    keyspace.remove(&key).unwrap();
                    items.remove(&key);
                }
                8 => db.flush().unwrap(),
                9 => db.compact().unwrap(),
                10 => iterators.push(keyspace.iter()),
                11 => drop(iterators.pop()),
                12 => db.wait_idle().unwrap(),
                13..15 => drop(db.snapshot().unwrap()),
                _ => {
                    db.persist().unwrap();
                    storage.kill();
                    iterators.clear();
                    drop((keyspace, db));
                    storage = storage.reopen();
                    db = open(&storage);
                    keyspace = db.keyspace("items").unwrap();
                }
            }
            if step % 4 == 0 {
                db.persist().unwrap();
                assert_eq!(repaired(storage.contents()), items, "seed {seed}, step {step}");
            }
        }
    }
}
