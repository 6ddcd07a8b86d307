//! Snapshots: reads repeat while writes and merges continue, and space is freed afterwards.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use alluvium::{Db, Durability, Keyspace};

const ITEMS: u32 = 30_000;

fn open(path: &Path) -> Db {
    Db::builder(path).durability(Durability::Buffered).open().unwrap()
}

fn fill(items: &Keyspace, round: u8) {
    for number in 0..ITEMS {
        items.insert(number.to_le_bytes(), [round; 60]).unwrap();
    }
}

/// Bytes of tables on the device.
fn table_bytes(path: &Path) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let tables = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("table-"));
    tables.map(|table| table.metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn a_snapshot_reads_the_same_while_everything_is_overwritten_and_gives_its_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    fill(&items, 1);
    let snapshot = db.snapshot().unwrap();
    let before = snapshot.keyspace("items").unwrap();
    items.insert(b"new", b"new").unwrap();
    for round in 2..5 {
        fill(&items, round);
        db.compact().unwrap();
        for number in (0..ITEMS).step_by(97) {
            assert_eq!(before.get(number.to_le_bytes()).unwrap(), Some(vec![1; 60]));
            assert_eq!(items.get(number.to_le_bytes()).unwrap(), Some(vec![round; 60]));
        }
        assert_eq!(before.get(b"new").unwrap(), None);
        assert!(!before.contains_key(b"new").unwrap());
    }
    let keys: Vec<_> = (0..ITEMS).map(u32::to_le_bytes).collect();
    assert!(before.multi_get(&keys).unwrap().iter().all(|value| value.as_deref() == Some(&[1; 60])));
    let mut seen = 0;
    for item in before.iter() {
        assert_eq!(item.unwrap().1, [1; 60]);
        seen += 1;
    }
    assert_eq!(seen, ITEMS);

    let held = table_bytes(directory.path());
    drop((before, snapshot));
    db.wait_idle().unwrap();
    let left = table_bytes(directory.path());
    assert!(left * 3 < held * 2, "{held} bytes with the snapshot, {left} without");
}

#[test]
fn all_keyspaces_are_of_the_same_moment() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let (one, other) = (db.keyspace("one").unwrap(), db.keyspace("other").unwrap());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..4_000u32 {
                let mut batch = db.batch();
                batch.insert(&one, b"key", number.to_le_bytes());
                batch.insert(&other, b"key", number.to_le_bytes());
                batch.commit().unwrap();
            }
        });
        while !writer.is_finished() {
            let snapshot = db.snapshot().unwrap();
            let [one, other] =
                ["one", "other"].map(|name| snapshot.keyspace(name).unwrap().get("key").unwrap());
            assert_eq!(one, other);
        }
    });
    let later = db.snapshot().unwrap();
    db.keyspace("third").unwrap().insert("key", "value").unwrap();
    assert!(later.keyspace("third").is_none());
    assert_eq!(later.keyspace_names(), ["one", "other"]);
    assert_eq!(later.keyspace("one").unwrap().get("key").unwrap(), Some(3_999u32.to_le_bytes().to_vec()));
}
