//! Repair of databases with large items: blob files with references are kept, and counted correctly.

use std::collections::BTreeMap;

use crate::damage::{Contents, environment, key, plan};
use alluvium::{Db, Environment, ManifestRepair, RepairOptions, repair_in};
use alluvium_io::{SimulatedClock, SimulatedStorage};

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

/// Checks that everything is present, also after unreferenced data were collected.
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
    assert_eq!((report.blob_files_lost, report.large_items_lost > 0), (1, true), "{report:?}");
    let db = open(&storage);
    let keyspace = db.keyspace("large").unwrap();
    let found: BTreeMap<_, _> = keyspace.iter().map(|item| item.unwrap()).collect();
    assert!(found.len() < 90);
    for number in 0..90 {
        let value = keyspace.get(key(number)).unwrap();
        assert!(value.is_none() || value == Some(self::value(number)), "{number}");
        assert_eq!(value.is_some(), found.contains_key(&key(number)));
    }
    keyspace.insert(key(1), value(1)).unwrap();
    assert_eq!(keyspace.get(key(1)).unwrap(), Some(value(1)));
    db.compact().unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
    let again = repair(&storage.contents());
    assert!(!again.0.changed, "{:?}", again.0);
}

/// Offsets of the values in the blob file that has most of them, in the order of the file.
fn places(contents: &Contents) -> (String, Vec<usize>) {
    let blobs = contents.iter().filter(|file| file.0.starts_with("blob-"));
    let (name, bytes) = blobs.max_by_key(|file| file.1.len()).unwrap();
    let find = |number| {
        let key = key(number);
        let content = [&key[..], &value(number)[..100]].concat();
        bytes.windows(content.len()).position(|window| window == content)
    };
    let mut places: Vec<usize> = (0..90).filter_map(find).collect();
    places.sort_unstable();
    (name.clone(), places)
}

#[test]
fn a_damaged_record_costs_one_item_and_a_damaged_header_none() {
    let contents = sample();
    let (name, places) = places(&contents);
    assert!(places.len() > 20);
    let header_of_file = 9;
    let inside = places[7] + 50;
    // The checksum of the first chunk is between header and key.
    let header_of_record = places[7] - 8 - 20;
    for (at, lost) in [(header_of_file, 0), (inside, 1), (header_of_record, 0)] {
        let mut contents = contents.clone();
        contents.get_mut(&name).unwrap()[at] ^= 0x10;
        let (report, storage) = repair(&contents);
        assert_eq!((report.changed, report.large_items_lost), (true, lost), "{at}: {report:?}");
        assert_eq!(report.blob_files_rewritten, u64::from(lost == 0), "{at}: {report:?}");
        let db = open(&storage);
        let keyspace = db.keyspace("large").unwrap();
        let found: BTreeMap<_, _> = keyspace.iter().map(|item| item.unwrap()).collect();
        assert_eq!(found.len() as u64, 90 - lost, "{at}");
        assert!((0..90).all(|number| found.get(&key(number)).is_none_or(|found| *found == value(number))));
        assert!(db.verify().unwrap().problems.is_empty(), "{at}");
        // What was moved can be collected like everything else.
        for number in 0..90 {
            keyspace.insert(key(number), "small").unwrap();
        }
        db.compact().unwrap();
        assert_eq!(db.stats().blobs.live_bytes, 0, "{at}");
        drop(keyspace);
        db.close().unwrap();
        let (again, _) = repair(&storage.contents());
        assert!(!again.changed, "{at}: {again:?}");
    }
}
