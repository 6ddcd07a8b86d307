//! Large items in backups, under quotas, in dropped keyspaces and for readers: their files are treated like tables.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Error, restore};
use alluvium_io::{SimulatedClock, SimulatedStorage};

fn open(path: &Path) -> Db {
    Db::builder(path).plan(crate::damage::plan()).durability(Durability::Buffered).open().unwrap()
}

fn simulated(storage: &SimulatedStorage) -> alluvium::Builder {
    let environment = Environment::over(Arc::new(storage.clone()));
    let environment =
        Environment { clock: Arc::new(SimulatedClock::default()), random_seed: 5, ..environment };
    let builder = Db::builder("large").plan(crate::damage::plan()).background(false).environment(environment);
    builder.blob_sizes(64 << 10, 1 << 20, 0)
}

fn value(number: u32, round: u8) -> Vec<u8> {
    vec![round ^ number as u8; 3_000 + number as usize * 11]
}

fn fill(db: &Db, name: &str, numbers: std::ops::Range<u32>, round: u8) {
    let items = db.keyspace(name).unwrap();
    for number in numbers {
        items.insert(number.to_le_bytes(), value(number, round)).unwrap();
    }
}

fn contents(db: &Db, name: &str) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.keyspace(name).unwrap().iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_backup_counts_its_blob_files_and_comes_back_with_them() {
    let directory = tempfile::tempdir().unwrap();
    let (root, target) = (directory.path().join("backups"), directory.path().join("restored"));
    let db = open(&directory.path().join("data"));
    fill(&db, "items", 0..50, 1);
    let first = contents(&db, "items");
    let (backup, made) = db.backup_into(&root).unwrap();
    let stored: usize = first.values().map(Vec::len).sum();
    assert!(backup.blob_files > 0 && backup.bytes > stored as u64, "{backup:?}");
    assert_eq!((made.linked_tables, made.linked_bytes), (backup.tables + backup.blob_files, backup.bytes));
    fill(&db, "items", 20..90, 2);
    db.compact().unwrap();
    let (second, _) = db.backup_into(&root).unwrap();
    let expected = contents(&db, "items");
    db.close().unwrap();
    assert_eq!(contents(&Db::open_read_only(&backup.path).unwrap(), "items"), first);
    let mut copied = 0;
    let restored = restore(&root, &target, |done, all| {
        assert!(done <= all && all == second.bytes);
        copied = done;
    });
    assert_eq!((restored.unwrap(), copied), (second.clone(), second.bytes));
    let db = open(&target);
    assert_eq!(contents(&db, "items"), expected);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn large_items_stop_before_the_limit_and_removals_make_room() {
    const MAX: u64 = 6 << 20;
    let storage = SimulatedStorage::new(1);
    let db = simulated(&storage).durability(Durability::Buffered).disk_bytes_max(MAX).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let disk_bytes = || storage.contents().values().map(|bytes| bytes.len() as u64).sum::<u64>();
    let mut written = 0u32;
    let refusal = loop {
        match items.insert(written.to_le_bytes(), vec![7; 20_000]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(disk_bytes() <= MAX, "{} bytes", disk_bytes());
        if written.is_multiple_of(10) {
            db.wait_idle().unwrap();
        }
    };
    assert!(matches!(refusal, Error::DiskQuota { max: MAX, .. }), "{refusal}");
    assert!(written > 20, "{written} items fit");
    for number in 0..written {
        items.remove(number.to_le_bytes()).unwrap();
    }
    db.compact().unwrap();
    assert!(disk_bytes() < MAX / 2, "{} bytes are left", disk_bytes());
    items.insert("again", vec![8; 20_000]).unwrap();
    assert_eq!(items.get("again").unwrap(), Some(vec![8; 20_000]));
}

#[test]
fn a_dropped_or_cleared_keyspace_gives_the_space_of_its_large_items_back() {
    for clears in [true, false] {
        let storage = SimulatedStorage::new(1);
        let db = simulated(&storage).open().unwrap();
        // Items of both keyspaces in the same files.
        for number in 0..60 {
            fill(&db, "gone", number..number + 1, 1);
            fill(&db, "kept", number..number + 1, 2);
        }
        db.compact().unwrap();
        fill(&db, "gone", 40..70, 3);
        let kept = contents(&db, "kept");
        let snapshot = db.snapshot().unwrap();
        if clears {
            db.keyspace("gone").unwrap().clear().unwrap();
        } else {
            assert!(db.drop_keyspace("gone").unwrap());
        }
        db.wait_idle().unwrap();
        assert_eq!(snapshot.keyspace("gone").unwrap().iter().map(Result::unwrap).count(), 70);
        drop(snapshot);
        db.compact().unwrap();
        let blobs = db.stats().blobs;
        let live: usize = kept.values().map(Vec::len).sum();
        assert!(blobs.bytes < live as u64 * 5 / 4, "{blobs:?} for {live} bytes");
        assert_eq!(contents(&db, "kept"), kept);
        assert!(db.verify().unwrap().problems.is_empty());
        storage.crash();
        drop(db);
        let db = simulated(&storage.reopen()).open().unwrap();
        assert_eq!(contents(&db, "kept"), kept);
        assert_eq!(contents(&db, "gone").len(), 0);
    }
}

#[test]
fn readers_read_large_items_and_change_no_file() {
    let storage = SimulatedStorage::new(1);
    let db = simulated(&storage).open().unwrap();
    fill(&db, "items", 0..40, 1);
    db.flush().unwrap();
    fill(&db, "items", 30..60, 2);
    let expected = contents(&db, "items");
    // Killed, so that the last blob file has no known end.
    storage.kill();
    drop(db);
    let storage = storage.reopen();
    let (before, operations) = (storage.contents(), storage.operation_count());
    let db = simulated(&storage).read_only(true).open().unwrap();
    assert_eq!(contents(&db, "items"), expected);
    let items = db.keyspace("items").unwrap();
    let keys: Vec<_> = (0..60u32).map(u32::to_le_bytes).collect();
    let found = items.multi_get(&keys).unwrap();
    assert!(keys.iter().zip(found).all(|(key, value)| expected.get(&key[..]) == value.as_ref()));
    assert!(matches!(items.insert("key", vec![0; 5_000]), Err(Error::ReadOnly)));
    assert!(db.verify().unwrap().problems.is_empty());
    db.close().unwrap();
    assert_eq!((storage.contents(), storage.operation_count()), (before, operations));
}

#[test]
fn many_values_of_all_sizes_come_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let size = |number: u32| match number % 5 {
        0 => 10,
        1 => 3_000,
        2 => 70_000,
        3 => 1_100_000,
        _ => 2_500_000,
    };
    let key = |number: u32| {
        format!("key-{number}{}", if number.is_multiple_of(3) { "x".repeat(2_000) } else { String::new() })
    };
    for number in 0..45 {
        items.insert(key(number), vec![number as u8; size(number)]).unwrap();
        if number == 20 {
            db.compact().unwrap();
        }
    }
    let keys: Vec<_> = (0..60).rev().map(key).collect();
    for _ in 0..2 {
        let found = items.multi_get(&keys).unwrap();
        for (number, value) in (0..60).rev().zip(found) {
            let expected = (number < 45).then(|| vec![number as u8; size(number)]);
            assert!(value == expected, "item {number}");
        }
        db.flush().unwrap();
    }
}
