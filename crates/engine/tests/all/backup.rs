//! Incremental backups: each is complete, shares what did not change, and restores the original content.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Error, backups, remove_old_backups, restore};
use alluvium_io::SimulatedStorage;

fn open(path: &Path) -> Db {
    Db::builder(path).durability(Durability::Buffered).open().unwrap()
}

fn fill(db: &Db, numbers: std::ops::Range<u32>, value: u8) {
    let items = db.keyspace("items").unwrap();
    for number in numbers {
        items.insert(number.to_le_bytes(), [value; 60]).unwrap();
    }
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    db.keyspace("items").unwrap().iter().collect::<Result<_, _>>().unwrap()
}

#[test]
fn each_backup_is_whole_and_comes_back_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (data, root) = (directory.path().join("data"), directory.path().join("backups"));
    let db = open(&data);
    let mut expected = Vec::new();
    for round in 0..4u8 {
        fill(&db, u32::from(round) * 300..u32::from(round) * 300 + 400, round);
        if round == 1 {
            db.compact().unwrap();
        }
        expected.push(contents(&db));
        let (backup, made) = db.backup_into(&root).unwrap();
        assert_eq!(backup.number, u64::from(round) + 1);
        assert_eq!((made.copied_tables, made.copied_bytes), (0, 0));
        assert_eq!((made.linked_tables, made.linked_bytes), (backup.tables, backup.bytes));
    }
    fill(&db, 0..2000, 99);
    db.compact().unwrap();
    db.close().unwrap();
    let listed = backups(&root).unwrap();
    assert_eq!(listed.iter().map(|backup| backup.number).collect::<Vec<_>>(), [1, 2, 3, 4]);
    for (backup, expected) in listed.iter().zip(&expected) {
        assert_eq!(&contents(&Db::open_read_only(&backup.path).unwrap()), expected);
        let target = directory.path().join(format!("restored-{}", backup.number));
        let mut last = (0, 1);
        restore(&backup.path, &target, |done, total| last = (done, total)).unwrap();
        assert_eq!(last.0, last.1);
        let restored = open(&target);
        assert_eq!(&contents(&restored), expected);
        // What happens to the copy does not affect the backup.
        fill(&restored, 0..500, 77);
        restored.compact().unwrap();
        restored.close().unwrap();
        assert_eq!(&contents(&Db::open_read_only(&backup.path).unwrap()), expected);
    }
    assert_eq!(remove_old_backups(&root, 2).unwrap(), 2);
    assert_eq!(remove_old_backups(&root, 2).unwrap(), 0);
    let youngest = directory.path().join("youngest");
    assert_eq!(restore(&root, &youngest, |_, _| {}).unwrap().number, 4);
    assert_eq!(contents(&Db::open_read_only(&youngest).unwrap()), expected[3]);
}

/// A database whose files cannot be linked simulates one on another file system.
#[test]
fn across_file_systems_each_table_is_copied_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("backups");
    let environment = Environment::over(Arc::new(SimulatedStorage::new(1)));
    let db = Db::builder("elsewhere").background(false).environment(environment).open().unwrap();
    fill(&db, 0..500, 1);
    let (_, first) = db.backup_into(&root).unwrap();
    assert_eq!((first.linked_tables, first.copied_tables), (0, 1));
    fill(&db, 500..600, 2);
    let (second, made) = db.backup_into(&root).unwrap();
    assert_eq!((made.linked_tables, made.copied_tables), (1, 1));
    assert_eq!(contents(&Db::open_read_only(&second.path).unwrap()), contents(&db));
    let (_, third) = db.backup_into(&root).unwrap();
    assert_eq!((third.linked_tables, third.copied_tables), (2, 0));
}

#[test]
fn what_is_half_made_is_no_backup_and_goes_away() {
    let directory = tempfile::tempdir().unwrap();
    let (data, root) = (directory.path().join("data"), directory.path().join("backups"));
    let db = open(&data);
    fill(&db, 0..100, 1);
    db.backup_into(&root).unwrap();
    fs::create_dir(root.join("partial")).unwrap();
    fs::write(root.join("partial/table-00000001"), b"half").unwrap();
    fs::create_dir(root.join("removing")).unwrap();
    assert_eq!(backups(&root).unwrap().len(), 1);
    let (backup, _) = db.backup_into(&root).unwrap();
    assert_eq!(backup.number, 2);
    assert!(!root.join("partial").exists() && !root.join("removing").exists());
}

#[test]
fn backups_of_two_databases_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("backups");
    let (one, other) = (open(&directory.path().join("one")), open(&directory.path().join("other")));
    fill(&one, 0..10, 1);
    fill(&other, 0..10, 2);
    one.backup_into(&root).unwrap();
    let error = other.backup_into(&root).unwrap_err();
    assert!(
        matches!(error, Error::Backup { .. }) && error.to_string().contains("another database"),
        "{error}"
    );
    one.close().unwrap();
    // Closed and opened again it is the same database.
    let one = open(&directory.path().join("one"));
    assert_eq!(one.backup_into(&root).unwrap().0.number, 2);
}

#[test]
fn a_damaged_backup_is_not_restored() {
    let directory = tempfile::tempdir().unwrap();
    let (data, root) = (directory.path().join("data"), directory.path().join("backups"));
    let db = open(&data);
    fill(&db, 0..500, 1);
    let (backup, _) = db.backup_into(&root).unwrap();
    db.close().unwrap();
    let table = fs::read_dir(&backup.path)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("table-"))
        .unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[5000] ^= 1;
    fs::write(&table, bytes).unwrap();
    let target = directory.path().join("restored");
    let error = restore(&root, &target, |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert!(matches!(Db::builder(&target).create(false).open(), Err(Error::NotADatabase { .. })));
    let occupied = restore(&root, &target, |_, _| {}).unwrap_err();
    assert!(matches!(occupied, Error::NotADatabase { .. }), "{occupied}");
    let nothing =
        restore(directory.path().join("absent"), directory.path().join("new"), |_, _| {}).unwrap_err();
    assert!(matches!(nothing, Error::Backup { .. }), "{nothing}");
}
