//! Pages kept in what filters and indexes leave of the memory limit: scans of prefixes find them there, all answers
//! stay right, and filters and indexes have priority.

use std::path::Path;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Keyspace, KeyspaceOptions, PrefixRule};
use alluvium_io::{FileStorage, IoOptions};

const GROUPS: u32 = 400;
const GROUP_SIZE: u32 = 40;
const LIMIT_BYTES: u64 = 8 << 20;

fn open(directory: &Path, limit: Option<u64>) -> (Db, Keyspace) {
    let storage = FileStorage::create(directory, IoOptions::default()).unwrap();
    let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(storage)) };
    let mut builder = Db::builder(directory).durability(Durability::Buffered).background(false);
    if let Some(bytes) = limit {
        builder = builder.memory_bytes_max(bytes);
    }
    // Rows would answer the gets that show what the pages are good for.
    let db = builder.row_cache_bytes_max(0).environment(environment).open().unwrap();
    let options = KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: 4 });
    let items = db.keyspace_with("items", &options).unwrap();
    (db, items)
}

fn key(group: u32, member: u32) -> Vec<u8> {
    [group.to_be_bytes(), member.to_be_bytes()].concat()
}

fn value(group: u32, member: u32, version: u32) -> Vec<u8> {
    format!("{version} of {member} in {group}").into_bytes()
}

fn write_all(db: &Db, items: &Keyspace, version: u32) {
    for member in 0..GROUP_SIZE {
        for group in 0..GROUPS {
            items.insert(key(group, member), value(group, member, version)).unwrap();
        }
        if member % 10 == 9 {
            db.flush().unwrap();
        }
    }
}

fn scan_all(items: &Keyspace, version: u32) {
    for group in 0..GROUPS {
        let mut found: Vec<_> = items.scan_prefix(group.to_be_bytes()).unwrap().map(Result::unwrap).collect();
        found.sort();
        let expected = (0..GROUP_SIZE).map(|member| (key(group, member), value(group, member, version)));
        assert!(found.into_iter().eq(expected), "group {group}");
    }
}

/// Gets all items in each way; returns how many pages were read for that.
fn pages_read_for_gets(db: &Db, items: &Keyspace, version: u32) -> u64 {
    let before = db.stats().traffic.page_reads;
    for group in 0..GROUPS {
        let keys: Vec<_> = (0..GROUP_SIZE).map(|member| key(group, member)).collect();
        let values: Vec<_> = (0..GROUP_SIZE).map(|member| Some(value(group, member, version))).collect();
        assert_eq!(items.multi_get(&keys).unwrap(), values);
        for (key, value) in keys.iter().zip(&values) {
            assert_eq!(items.get(key).unwrap(), *value);
        }
        let mut found = 0;
        let visit = |key: &Vec<u8>, value: Option<&[u8]>| {
            let member = keys.iter().position(|other| other == key).unwrap();
            assert_eq!(value, values[member].as_deref());
            found += 1;
        };
        items.get_each(&keys, 8, visit).unwrap();
        assert_eq!(found, GROUP_SIZE);
    }
    db.stats().traffic.page_reads - before
}

#[test]
fn what_scans_have_read_is_read_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path(), Some(LIMIT_BYTES));
    write_all(&db, &items, 0);
    assert_eq!(db.stats().memory.pages, 0);
    assert!(pages_read_for_gets(&db, &items, 0) > 0, "gets keep nothing");
    scan_all(&items, 0);
    let kept = db.stats().memory.pages;
    assert!(kept > 0 && kept < LIMIT_BYTES);
    assert_eq!(pages_read_for_gets(&db, &items, 0), 0);
    scan_all(&items, 0);
    assert_eq!(db.stats().memory.pages, kept);
    // The tables' replacements are read, and the old tables' pages are dropped.
    write_all(&db, &items, 1);
    scan_all(&items, 1);
    db.compact().unwrap();
    scan_all(&items, 1);
    assert_eq!(pages_read_for_gets(&db, &items, 1), 0);
    assert!(db.stats().memory.pages <= kept + kept / 2);
    drop(items);
    db.close().unwrap();
}

#[test]
fn filters_and_indexes_come_first() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path(), Some(LIMIT_BYTES));
    write_all(&db, &items, 0);
    scan_all(&items, 0);
    let whole = db.stats().memory;
    // Room for half of the pages: some are dropped, and the rest is still useful.
    let of_indexes = whole.tables + whole.filters + whole.indexes;
    db.set_index_bytes_max(of_indexes + whole.pages / 2);
    scan_all(&items, 0);
    let half = db.stats().memory;
    assert!(half.pages > 0 && half.pages <= whole.pages / 2);
    assert_eq!((half.filters, half.indexes), (whole.filters, whole.indexes));
    // With no room for pages except what an iterator borrows, nothing else is dropped.
    let borrowed = LIMIT_BYTES / 64;
    assert!(borrowed < whole.pages);
    db.set_index_bytes_max(of_indexes + borrowed);
    scan_all(&items, 0);
    let none = db.stats().memory;
    assert!(none.pages <= borrowed);
    assert_eq!((none.filters, none.indexes), (whole.filters, whole.indexes));
    // They are loaded again once there is room.
    db.set_index_bytes_max(u64::MAX);
    scan_all(&items, 0);
    assert_eq!(db.stats().memory.pages, whole.pages);
    drop(items);
    db.close().unwrap();
}

#[test]
fn nothing_is_kept_without_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path(), None);
    write_all(&db, &items, 0);
    scan_all(&items, 0);
    assert_eq!(db.stats().memory.pages, 0);
    drop(items);
    db.close().unwrap();
}
