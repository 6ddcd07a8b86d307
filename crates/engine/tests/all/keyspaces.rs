//! Dropping keyspaces: they are gone at once and for good, including their space, and holders of handles get an error.

use std::sync::Arc;

use crate::damage::plan;
use alluvium::{Db, Environment, Error};
use alluvium_io::{SimulatedClock, SimulatedStorage};

fn open(storage: &SimulatedStorage) -> Db {
    let environment = Environment::over(Arc::new(storage.clone()));
    let environment = Environment { clock: Arc::new(SimulatedClock::default()), ..environment };
    Db::builder("dropped").plan(plan()).background(false).environment(environment).open().unwrap()
}

fn fill(db: &Db, name: &str, count: u32) {
    let keyspace = db.keyspace(name).unwrap();
    for number in 0..count {
        keyspace.insert(number.to_le_bytes(), [7; 100]).unwrap();
    }
}

#[test]
fn a_dropped_keyspace_is_gone_for_good_and_the_others_stay() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage);
    for name in ["kept", "dropped"] {
        fill(&db, name, 500);
    }
    db.compact().unwrap();
    for name in ["kept", "dropped"] {
        fill(&db, name, 60);
    }
    db.flush().unwrap();
    fill(&db, "dropped", 10);
    fill(&db, "kept", 10);
    let bytes = |storage: &SimulatedStorage| storage.contents().values().map(Vec::len).sum::<usize>();
    let before = bytes(&storage);
    assert!(db.drop_keyspace("dropped").unwrap());
    assert!(!db.drop_keyspace("dropped").unwrap());
    assert!(bytes(&storage) < before - 50_000, "{before} bytes before, {} after", bytes(&storage));
    storage.crash();
    drop(db);
    let storage = storage.reopen();
    let db = open(&storage);
    assert_eq!(db.keyspace_names(), ["kept"]);
    assert_eq!(db.keyspace("kept").unwrap().iter().count(), 500);
    assert_eq!(db.keyspace("dropped").unwrap().iter().count(), 0);
    fill(&db, "dropped", 3);
    db.compact().unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
    assert_eq!(db.keyspace("dropped").unwrap().iter().count(), 3);
}

#[test]
fn handles_of_a_dropped_keyspace_say_so() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage);
    fill(&db, "dropped", 30);
    fill(&db, "kept", 30);
    let (dropped, kept) = (db.keyspace("dropped").unwrap(), db.keyspace("kept").unwrap());
    let snapshot = db.snapshot().unwrap();
    assert!(db.drop_keyspace("dropped").unwrap());
    let mut batch = db.batch();
    batch.insert(&kept, "a", "b");
    batch.insert(&dropped, "a", "b");
    let refusals = [
        dropped.get("a").map(drop),
        dropped.multi_get(&["a", "b"]).map(drop),
        dropped.insert("a", "b"),
        dropped.remove("a"),
        dropped.update("a", |_| alluvium::Update::Keep).map(drop),
        dropped.clear(),
        dropped.iter().next().expect("an answer").map(drop),
        dropped.scan(0, 10).map(drop),
        batch.commit(),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let named = matches!(&refusal, Err(Error::KeyspaceDropped { name }) if name == "dropped");
        assert!(named, "{number}: {refusal:?}");
    }
    assert_eq!(kept.get("a").unwrap(), None);
    assert_eq!(snapshot.keyspace("dropped").unwrap().iter().count(), 30);
    fill(&db, "dropped", 2);
    assert_eq!(db.keyspace("dropped").unwrap().iter().count(), 2);
    assert!(dropped.get("a").is_err());
}

#[test]
fn a_cleared_keyspace_gives_its_space_back_at_once() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage);
    for name in ["kept", "cleared"] {
        fill(&db, name, 500);
        db.compact().unwrap();
        fill(&db, name, 60);
    }
    // Sections of both in one file.
    db.flush().unwrap();
    let allocated = || {
        let names = storage.contents().into_keys();
        let file = |name: String| alluvium_io::Storage::open(&storage, &name, alluvium_io::OpenMode::Read);
        names.map(|name| file(name).unwrap().allocated_bytes().unwrap()).sum::<u64>()
    };
    let before = allocated();
    db.keyspace("cleared").unwrap().clear().unwrap();
    assert!(allocated() + 50_000 < before, "{before} bytes before, {} after", allocated());
    assert_eq!(db.keyspace("cleared").unwrap().iter().count(), 0);
    assert_eq!(db.keyspace("kept").unwrap().iter().count(), 500);
    storage.crash();
    drop(db);
    let db = open(&storage.reopen());
    assert_eq!(db.keyspace("cleared").unwrap().iter().count(), 0);
    assert_eq!(db.keyspace("kept").unwrap().iter().count(), 500);
    assert!(db.verify().unwrap().problems.is_empty());
}

/// A thread that still sees an old item after its own write has written before the clearing, so its write is gone, too.
#[test]
fn clearing_happens_at_one_moment_for_those_who_write_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(plan()).durability(alluvium::Durability::Buffered);
    let db = builder.open().unwrap();
    let items = db.keyspace("items").unwrap();
    for _ in 0..40 {
        items.insert("old", "value").unwrap();
        let before: Vec<u32> = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut before = Vec::new();
                for number in 0..u32::MAX {
                    items.insert(number.to_le_bytes(), "new").unwrap();
                    if !items.contains_key("old").unwrap() {
                        break;
                    }
                    before.push(number);
                }
                before
            });
            while items.get(0_u32.to_le_bytes()).unwrap().is_none() {}
            items.clear().unwrap();
            writer.join().unwrap()
        });
        for number in before {
            assert_eq!(items.get(number.to_le_bytes()).unwrap(), None, "{number} outlived the clearing");
        }
        items.clear().unwrap();
    }
}
