//! Checkpoints: independent databases that share bytes with the one from which they were made, and never harm it.

use std::path::Path;

use alluvium::{Db, Durability, Error, Keyspace};

const ITEMS: u32 = 30_000;

fn open(path: &Path) -> Db {
    Db::builder(path).durability(Durability::Buffered).open().unwrap()
}

fn fill(items: &Keyspace, round: u8) {
    for number in 0..ITEMS {
        items.insert(number.to_le_bytes(), [round; 60]).unwrap();
    }
}

fn check(db: &Db, round: u8) {
    let items = db.keyspace("items").unwrap();
    for number in 0..ITEMS {
        assert_eq!(items.get(number.to_le_bytes()).unwrap(), Some(vec![round; 60]), "item {number}");
    }
    assert_eq!(items.iter().count(), ITEMS as usize);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn database_and_checkpoint_go_different_ways() {
    let directory = tempfile::tempdir().unwrap();
    let [original, copy] = ["original", "copy"].map(|name| directory.path().join(name));
    let db = open(&original);
    let items = db.keyspace("items").unwrap();
    // Hash runs of several ages, a sorted run, and items in the log.
    fill(&items, 1);
    db.compact().unwrap();
    fill(&items, 2);
    let checkpoint = db.checkpoint(&copy).unwrap();
    assert!(checkpoint.linked_tables > 0 && checkpoint.copied_tables == 0, "{checkpoint:?}");
    // Every shared table is merged away in the original: its space must not be freed while the copy uses it.
    fill(&items, 3);
    db.compact().unwrap();
    let copied = open(&copy);
    check(&copied, 2);
    check(&db, 3);
    let copied_items = copied.keyspace("items").unwrap();
    fill(&copied_items, 4);
    copied.compact().unwrap();
    check(&copied, 4);
    check(&db, 3);
    drop((items, copied_items));
    db.close().unwrap();
    copied.close().unwrap();
    check(&open(&original), 3);
    check(&open(&copy), 4);
}

#[test]
fn a_checkpoint_of_a_checkpoint_survives_them_both() {
    let directory = tempfile::tempdir().unwrap();
    let [first, second, third] = ["1", "2", "3"].map(|name| directory.path().join(name));
    let db = open(&first);
    fill(&db.keyspace("items").unwrap(), 1);
    db.checkpoint(&second).unwrap();
    db.close().unwrap();
    std::fs::remove_dir_all(&first).unwrap();
    let db = open(&second);
    db.checkpoint(&third).unwrap();
    fill(&db.keyspace("items").unwrap(), 2);
    db.compact().unwrap();
    db.close().unwrap();
    std::fs::remove_dir_all(&second).unwrap();
    check(&open(&third), 1);
}

#[test]
fn a_directory_that_is_not_empty_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory.path().join("db"));
    let target = directory.path().join("target");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("notes.txt"), "mine").unwrap();
    assert!(matches!(db.checkpoint(&target), Err(Error::NotADatabase { .. })));
    assert_eq!(std::fs::read(target.join("notes.txt")).unwrap(), b"mine");
}

/// A clear between a checkpoint's snapshot and the conversion of its log makes that log unreachable.
#[test]
fn checkpoints_beside_clears_and_drops_end() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path().join("database")).durability(Durability::Buffered);
    let db = db.background(false).open().unwrap();
    std::thread::scope(|scope| {
        let clears = scope.spawn(|| {
            for round in 0..200 {
                let items = db.keyspace("items").unwrap();
                items.insert("key", "value").unwrap();
                if round % 2 == 0 {
                    items.clear().unwrap();
                } else {
                    db.drop_keyspace("items").unwrap();
                }
            }
        });
        for number in 0..20 {
            db.checkpoint(directory.path().join(number.to_string())).unwrap();
        }
        clears.join().unwrap();
    });
}
