//! Opening for reading only: everything can be read, nothing changes, and writers get an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::damage::Sample;
use alluvium::{Db, Durability, Error};
use alluvium_io::SimulatedStorage;

fn files(path: &Path) -> BTreeMap<String, (Vec<u8>, std::time::SystemTime)> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let changed = entry.metadata().unwrap().modified().unwrap();
            (entry.file_name().into_string().unwrap(), (fs::read(entry.path()).unwrap(), changed))
        })
        .collect()
}

#[test]
fn everything_is_read_and_no_file_changes() {
    let sample = Sample::new();
    let storage = SimulatedStorage::from_contents(2, &sample.contents);
    let operations = storage.operation_count();
    let environment = sample.environment_over(storage.clone());
    let db = Db::builder("sample").read_only(true).environment(environment).open().unwrap();
    let mut found = BTreeMap::new();
    for name in db.keyspace_names() {
        let keyspace = db.keyspace(&name).unwrap();
        let snapshot = db.snapshot().unwrap();
        let snapshot = snapshot.keyspace(&name).unwrap();
        for item in keyspace.iter() {
            let (key, value) = item.unwrap();
            assert_eq!(keyspace.get(&key).unwrap().as_ref(), Some(&value));
            assert_eq!(snapshot.get(&key).unwrap().as_ref(), Some(&value));
            found.insert((name.clone(), key), value);
        }
    }
    assert_eq!(found, sample.items);
    assert!(db.verify().unwrap().problems.is_empty());
    assert!(db.stats().storage.ends_with("read only"), "{}", db.stats().storage);
    db.close().unwrap();
    assert_eq!((storage.contents(), storage.operation_count()), (sample.contents, operations));
}

#[test]
fn writes_are_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    db.keyspace("items").unwrap().insert("key", "value").unwrap();
    db.close().unwrap();
    let before = files(directory.path());
    let db = Db::open_read_only(directory.path()).unwrap();
    let items = db.keyspace("items").unwrap();
    assert_eq!(items.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    let mut batch = db.batch();
    batch.insert(&items, "a", "b");
    let copy = tempfile::tempdir().unwrap();
    let refusals = [
        items.insert("key", "other"),
        items.remove("key"),
        items.clear(),
        items.compare_and_swap("key", None, Some(b"x")).map(drop),
        batch.commit(),
        db.keyspace("new").map(drop),
        db.flush(),
        db.compact(),
        db.persist(),
        db.checkpoint(copy.path()).map(drop),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        assert!(matches!(refusal, Err(Error::ReadOnly)), "{number}: {refusal:?}");
    }
    drop((items, db));
    assert_eq!(files(directory.path()), before);
}

#[test]
fn readers_keep_a_writer_out_and_a_writer_readers() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Db::open(directory.path()).unwrap();
    let error = Db::open_read_only(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }) && error.to_string().contains("checkpoint"), "{error}");
    let copies = tempfile::tempdir().unwrap();
    let copy = copies.path().join("copy");
    writer.checkpoint(&copy).unwrap();
    let reading_copy = Db::open_read_only(&copy).unwrap();
    drop(reading_copy);
    writer.close().unwrap();
    let readers =
        [Db::open_read_only(directory.path()).unwrap(), Db::open_read_only(directory.path()).unwrap()];
    let error = Db::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }) && error.to_string().contains("reads"), "{error}");
    drop(readers);
    Db::open(directory.path()).unwrap();
}

#[test]
fn a_crash_s_log_is_replayed_in_memory() {
    let sample = Sample::new();
    let storage = SimulatedStorage::new(4);
    let open = |storage: &SimulatedStorage, read_only| {
        Db::builder("crashed")
            .read_only(read_only)
            .background(false)
            .durability(Durability::Sync)
            .environment(sample.environment_over(storage.clone()))
            .open()
    };
    let db = open(&storage, false).unwrap();
    let items = db.keyspace("items").unwrap();
    items.insert("key", "value").unwrap();
    storage.crash();
    drop((items, db));
    let storage = storage.reopen();
    let before = storage.contents();
    for _ in 0..2 {
        let db = open(&storage, true).unwrap();
        assert_eq!(db.keyspace("items").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }
    assert_eq!(storage.contents(), before);
}

#[test]
fn what_is_no_database_is_not_made_one() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Db::open_read_only(directory.path()), Err(Error::NotADatabase { .. })));
    assert!(matches!(Db::open_read_only(directory.path().join("absent")), Err(Error::Io { .. })));
    assert!(files(directory.path()).is_empty());
}
