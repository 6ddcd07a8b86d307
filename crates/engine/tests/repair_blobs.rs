//! Repair of databases with large items: blob files that something refers to stay, and are counted right.

mod damage;

use std::collections::BTreeMap;

use alluvium::{Db, Environment, ManifestRepair, RepairOptions, repair_in};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use damage::{Contents, environment, key, plan};

fn open(storage: &SimulatedStorage) -> Db {
    let environment: Environment = environment(storage.clone(), &SimulatedClock::default());
    Db::builder("large").plan(plan()).background(false).environment(environment).open().unwrap()
}

fn value(number: u32) -> Vec<u8> {
    vec![number as u8; 2_500 + number as usize * 10]
}

/// Large items in tables and in the log.
fn sample() -> Contents {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage);
    let keyspace = db.keyspace("large").unwrap();
    for number in 0..90 {
        keyspace.insert(key(number), value(number)).unwrap();
        match number {
            40 => db.compact().unwrap(),
            70 => db.flush().unwrap(),
            _ => {}
        }
    }
    drop(keyspace);
    db.close().unwrap();
    storage.contents()
}

fn repair(contents: &Contents) -> (alluvium::RepairReport, SimulatedStorage) {
    let storage = SimulatedStorage::from_contents(2, contents);
    let options = RepairOptions { plan: plan(), ..RepairOptions::default() };
    let report = repair_in(environment(storage.clone(), &SimulatedClock::default()), &options).unwrap();
    (report, storage)
}

/// Everything is there, also after what nothing refers to was collected.
fn check_all(storage: &SimulatedStorage, name: &str) {
    for _ in 0..2 {
        let db = open(storage);
        let keyspace = db.keyspace(name).unwrap();
        let found: BTreeMap<_, _> = keyspace.iter().map(|item| item.unwrap()).collect();
        let expected: BTreeMap<_, _> = (0..90).map(|number| (key(number), value(number))).collect();
        assert_eq!(found, expected);
        db.compact().unwrap();
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        drop(keyspace);
        db.close().unwrap();
    }
}

#[test]
fn blob_files_outlive_the_manifest() {
    let mut contents = sample();
    contents.retain(|name, _| name != "CURRENT" && !name.starts_with("manifest-"));
    let (report, storage) = repair(&contents);
    assert_eq!(report.manifest, ManifestRepair::Rebuilt);
    check_all(&storage, "keyspace-0");
}

#[test]
fn a_sound_database_with_blob_files_is_left_alone() {
    let (report, storage) = repair(&sample());
    assert!(!report.changed, "{report:?}");
    check_all(&storage, "large");
}

#[test]
fn a_missing_blob_file_costs_the_items_in_it() {
    let mut contents = sample();
    let name = contents.keys().find(|name| name.starts_with("blob-")).unwrap().clone();
    contents.remove(&name);
    let (report, storage) = repair(&contents);
    assert_eq!(report.blob_files_lost, 1, "{report:?}");
    let db = open(&storage);
    let keyspace = db.keyspace("large").unwrap();
    assert!(keyspace.get(key(1)).is_err());
    keyspace.insert(key(1), value(1)).unwrap();
    assert_eq!(keyspace.get(key(1)).unwrap(), Some(value(1)));
}
