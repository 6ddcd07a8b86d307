//! Bulk ingest: the same outcome as as many writes.

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
        // One key comes very often, so that its part can't be split.
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
    assert!(matches!(ingest.insert("b", vec![0; 5_000]), Err(Error::ItemTooLarge { .. })));
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
