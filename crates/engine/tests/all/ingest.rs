//! Bulk ingest: the same result as that of the same number of writes.

use std::collections::BTreeMap;

use alluvium::{Db, Durability, Error, Metadata};

fn key(number: u64) -> Vec<u8> {
    format!("key-{number}").into_bytes()
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.keyspace("k").unwrap().iter().map(|item| item.unwrap()).collect()
}

#[test]
fn later_items_replace_earlier_ones_and_what_was_there() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut model = BTreeMap::new();
    for number in 0..20_000 {
        keyspace.insert(key(number), b"old").unwrap();
        model.insert(key(number), b"old".to_vec());
    }
    db.flush().unwrap();
    keyspace.insert(key(3), b"in the log").unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    for number in (10_000..60_000).chain(0..10) {
        for round in 0..2 {
            let value = format!("value {number} {round}").into_bytes();
            ingest.insert(key(number), &value).unwrap();
            model.insert(key(number), value);
        }
    }
    assert_eq!(keyspace.get(key(3)).unwrap().as_deref(), Some(&b"in the log"[..]));
    let ingested = ingest.finish().unwrap();
    assert_eq!((ingested.items, ingested.logged), (100_020, false));
    assert_eq!(contents(&db), model);
    keyspace.insert(key(4), b"newer").unwrap();
    model.insert(key(4), b"newer".to_vec());
    db.compact().unwrap();
    assert_eq!(contents(&db), model);
    for (key, value) in model.iter().step_by(997) {
        assert_eq!(keyspace.get(key).unwrap().as_ref(), Some(value));
    }
    assert!(db.verify().unwrap().problems.is_empty());
    drop((keyspace, db));
    let db = Db::open(directory.path()).unwrap();
    assert_eq!(contents(&db), model);
}

#[test]
fn few_items_go_through_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    (0..50_000).for_each(|number| ingest.insert(key(number), b"first").unwrap());
    assert!(!ingest.finish().unwrap().logged);
    let mut ingest = keyspace.ingest().unwrap();
    (0..100).for_each(|number| ingest.insert(key(number), b"second").unwrap());
    assert!(ingest.finish().unwrap().logged);
    assert_eq!(keyspace.get(key(99)).unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(keyspace.get(key(100)).unwrap().as_deref(), Some(&b"first"[..]));
}

#[test]
fn parts_that_do_not_fit_in_memory_are_parted_again() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).ingest_sort_bytes_max(4_000);
    let db = builder.durability(Durability::Buffered).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    let mut model = BTreeMap::new();
    for number in 0..30_000 {
        // One key appears very often, so that its part cannot be split.
        let key = if number % 3 == 0 { key(0) } else { key(number) };
        let value = vec![number as u8; 50];
        ingest.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    ingest.finish().unwrap();
    assert_eq!(contents(&db), model);
    let spilled = std::fs::read_dir(directory.path()).unwrap();
    let spilled =
        spilled.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("spill"));
    assert_eq!(spilled.count(), 0);
}

#[test]
fn nothing_remains_of_an_ingest_that_is_dropped_or_cut_by_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    ingest.insert("a", "1").unwrap();
    assert!(matches!(ingest.insert(vec![0; 70_000], "2"), Err(Error::KeyTooLarge { .. })));
    drop(ingest);
    assert_eq!(keyspace.get("a").unwrap(), None);
    assert_eq!(keyspace.ingest().unwrap().finish().unwrap().items, 0);
    drop((keyspace, db));
    std::fs::write(directory.path().join("spill-00000001-000"), "left by a crash").unwrap();
    let db = Db::open(directory.path()).unwrap();
    assert!(!directory.path().join("spill-00000001-000").exists());
    assert_eq!(contents(&db).len(), 0);
}

#[test]
fn flags_and_expiry_come_along() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    let metadata = Metadata { flags: 7, expires_at_ms: Some(u64::MAX) };
    ingest.insert_with("lasting", "1", metadata).unwrap();
    ingest.insert_with("gone", "2", Metadata { flags: 0, expires_at_ms: Some(1) }).unwrap();
    ingest.finish().unwrap();
    assert_eq!(keyspace.get_with_metadata("lasting").unwrap(), Some((b"1".to_vec(), metadata)));
    assert_eq!(keyspace.get("gone").unwrap(), None);
}

fn large_value(number: u64, round: u64) -> Vec<u8> {
    let mut value = format!("large {number} {round} ").into_bytes();
    value.resize(3_000 + (number as usize * 37) % 9_000, b'.');
    value
}

/// Every third item is large; every ninth has a key that is too long for tables.
fn mixed(number: u64, round: u64) -> (Vec<u8>, Vec<u8>) {
    let mut key = key(number);
    if number.is_multiple_of(9) {
        key.resize(1_500, b'.');
    }
    let value = match number % 3 {
        0 => large_value(number, round),
        _ => format!("{number} {round}").into_bytes(),
    };
    (key, value)
}

#[test]
fn large_items_go_to_blob_files_and_come_back_after_another_opening() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let db = open();
    let keyspace = db.keyspace("k").unwrap();
    let mut model = BTreeMap::new();
    for number in (0..600).step_by(2) {
        let (key, value) = mixed(number, 0);
        keyspace.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    let mut ingest = keyspace.ingest().unwrap();
    for (number, round) in (300..1_500).map(|number| (number, 1)).chain((300..400).map(|number| (number, 2)))
    {
        let (key, value) = mixed(number, round);
        ingest.insert(&key, &value).unwrap();
        model.insert(key, value);
    }
    // What is not in tables yet is not collected.
    db.compact().unwrap();
    let ingested = ingest.finish().unwrap();
    assert_eq!((ingested.items, ingested.logged), (1_300, false));
    assert_eq!(contents(&db), model);
    // Few items compared with those already stored.
    let mut ingest = keyspace.ingest().unwrap();
    for number in [3, 4, 3_000] {
        for round in [7, 8] {
            let (key, value) = mixed(number, round);
            ingest.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
    assert!(ingest.finish().unwrap().logged);
    assert_eq!(contents(&db), model);
    db.compact().unwrap();
    assert_eq!(contents(&db), model);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert_eq!(report.large_items as usize, model.values().filter(|value| value.len() >= 3_000).count());
    drop((keyspace, db));
    let db = open();
    assert_eq!(contents(&db), model);
    // When all items are gone, so are the blob files: nothing was counted twice.
    let keyspace = db.keyspace("k").unwrap();
    model.keys().for_each(|key| keyspace.remove(key).unwrap());
    db.compact().unwrap();
    // Files are removed by a separate thread.
    db.wait_idle().unwrap();
    assert_eq!(blob_files(directory.path()), 0);
}

#[test]
fn large_items_of_a_dropped_ingest_are_collected() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    keyspace.insert("kept", large_value(1, 1)).unwrap();
    let mut ingest = keyspace.ingest().unwrap();
    (0..400).for_each(|number| ingest.insert(key(number), large_value(number, 0)).unwrap());
    drop(ingest);
    db.compact().unwrap();
    db.compact().unwrap();
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.garbage_bytes < 100_000, "{report:?}");
    assert_eq!(contents(&db), BTreeMap::from([(b"kept".to_vec(), large_value(1, 1))]));
}

fn blob_files(directory: &std::path::Path) -> usize {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("blob-")).count()
}
