//! The row cache: what gets found in tables is found again without a read, and is never older than the table's content.

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, Metadata, PrefixRule};
use proptest::prelude::*;

const ITEMS: u32 = 2_000;

pub(crate) fn key(number: u32) -> Vec<u8> {
    format!("g{}/{number}", number % 3).into_bytes()
}

pub(crate) fn value(number: u32, version: u32) -> Vec<u8> {
    // Every seventh value is large enough for a blob file.
    let len = if number.is_multiple_of(7) { 5_000 } else { 40 };
    format!("{number} {version} ").into_bytes().into_iter().cycle().take(len).collect()
}

fn page_reads(db: &Db) -> u64 {
    let traffic = db.stats().traffic;
    traffic.page_reads + traffic.blob_reads
}

fn loaded(db: &Db) -> Keyspace {
    let keyspace = db.keyspace("k").unwrap();
    for number in 0..ITEMS {
        keyspace.insert(key(number), value(number, 0)).unwrap();
    }
    db.flush().unwrap();
    // A merge to a level without filters would make absent keys cost reads from then on.
    db.wait_idle().unwrap();
    keyspace
}

#[test]
fn what_was_read_once_is_found_without_a_read() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = loaded(&db);
    for number in 0..ITEMS {
        assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 0)));
        assert_eq!(keyspace.get(key(ITEMS + number)).unwrap(), None);
    }
    let reads = page_reads(&db);
    assert!(reads >= u64::from(ITEMS));
    for number in 0..ITEMS {
        let expected = value(number, 0);
        assert_eq!(keyspace.get(key(number)).unwrap().as_ref(), Some(&expected));
        assert_eq!(keyspace.get_with(key(number), <[u8]>::len).unwrap(), Some(expected.len()));
        assert!(keyspace.contains_key(key(number)).unwrap());
        assert_eq!(keyspace.get(key(ITEMS + number)).unwrap(), None);
    }
    let keys: Vec<_> = (0..2 * ITEMS).map(key).collect();
    let all: Vec<_> = (0..2 * ITEMS).map(|number| (number < ITEMS).then(|| value(number, 0))).collect();
    assert_eq!(keyspace.multi_get(&keys).unwrap(), all);
    let mut seen = 0;
    keyspace.get_each(&keys, 16, |_, value| seen += u32::from(value.is_some())).unwrap();
    assert_eq!((seen, page_reads(&db)), (ITEMS, reads));
    let rows = db.stats().rows;
    assert!(rows.hits >= u64::from(5 * ITEMS) && rows.rows >= u64::from(ITEMS), "{rows:?}");
}

/// A conversion makes rows of references, for which there is room where there is none for values.
#[test]
fn a_large_item_is_found_in_one_read() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.row_cache_bytes_max(4 << 20).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    for number in (0..ITEMS).map(|number| number * 7) {
        keyspace.insert(key(number), value(number, 0)).unwrap();
    }
    db.flush().unwrap();
    for round in 1..=2 {
        for number in (0..ITEMS).map(|number| number * 7) {
            assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 0)));
        }
        // Some values displace references that were never used.
        let traffic = db.stats().traffic;
        assert!(traffic.page_reads <= u64::from(ITEMS / 20), "{traffic:?}");
        assert!(traffic.blob_reads <= u64::from(round * ITEMS), "{traffic:?}");
    }
    db.compact().unwrap();
    let keys: Vec<_> = (0..ITEMS).map(|number| key(number * 7)).collect();
    let found = keyspace.multi_get(&keys).unwrap();
    assert!((0..ITEMS).zip(found).all(|(number, found)| found == Some(value(number * 7, 0))));
    assert!(db.stats().traffic.page_reads <= u64::from(ITEMS / 20));
}

#[test]
fn a_prefix_that_was_scanned_is_scanned_without_a_read() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let options = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' });
    let keyspace = db.keyspace_with("k", &options).unwrap();
    // The items of groups are in several runs, and the last group is too large for a row.
    let key = |group: u32, number: u32| format!("{group}/{number}").into_bytes();
    let items_of = |group: u32| if group == 100 { 1_000 } else { 10 };
    for number in 0..1_000 {
        for group in (0..=100).filter(|&group| number < items_of(group)) {
            keyspace.insert(key(group, number), [number as u8; 100]).unwrap();
        }
        if number % 3 == 0 && number < 10 {
            db.flush().unwrap();
        }
    }
    db.flush().unwrap();
    let scan = |group: u32| {
        let items = keyspace.scan_prefix(group.to_string()).unwrap().map(Result::unwrap);
        let mut found: Vec<_> = items.collect();
        found.sort();
        found
    };
    let expected = |group: u32| {
        let items = (0..items_of(group)).map(|number| (key(group, number), vec![number as u8; 100]));
        let mut expected: Vec<_> = items.collect();
        expected.sort();
        expected
    };
    for group in 0..=100 {
        assert_eq!(scan(group), expected(group));
    }
    let found = db.stats().rows.hits;
    for group in 0..=100 {
        assert_eq!(scan(group), expected(group));
    }
    assert_eq!(db.stats().rows.hits, found + 100);
    // What is written since is seen beside the row, and by the next one.
    keyspace.remove(key(3, 0)).unwrap();
    keyspace.insert(key(3, 1), "new").unwrap();
    let mut changed = expected(3);
    changed.remove(0);
    changed[0].1 = b"new".to_vec();
    for _ in 0..2 {
        assert_eq!(scan(3), changed);
        db.flush().unwrap();
        db.compact().unwrap();
    }
    assert_eq!(scan(3), changed);
}

#[test]
fn without_a_row_cache_every_get_reads() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.row_cache_bytes_max(0).open().unwrap();
    let keyspace = loaded(&db);
    for round in 1..=3 {
        for number in 0..ITEMS {
            assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 0)));
        }
        assert!(page_reads(&db) >= round * u64::from(ITEMS));
    }
    assert_eq!((db.stats().rows.hits, db.stats().rows.bytes_max), (0, 0));
}

#[test]
fn snapshots_do_not_see_rows_of_later_items() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = loaded(&db);
    let before = db.snapshot().unwrap();
    for number in 0..ITEMS {
        keyspace.insert(key(number), value(number, 1)).unwrap();
    }
    db.flush().unwrap();
    db.compact().unwrap();
    let kept = before.keyspace("k").unwrap();
    for number in 0..ITEMS {
        assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 1)));
        assert_eq!(kept.get(key(number)).unwrap(), Some(value(number, 0)));
        assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 1)));
    }
}

#[test]
fn rows_take_what_filters_and_indexes_leave_of_a_limit() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.memory_bytes_max(64 << 20).open().unwrap();
    let keyspace = loaded(&db);
    let read_all = || {
        for number in 0..ITEMS {
            assert_eq!(keyspace.get(key(number)).unwrap(), Some(value(number, 0)));
        }
    };
    read_all();
    let large = db.stats();
    assert!(large.rows.bytes_max > 8 << 20 && large.rows.rows > 0, "{:?}", large.rows);
    db.set_memory_bytes_max(Some(8 << 20)).unwrap();
    read_all();
    let small = db.stats();
    assert!(small.rows.bytes_max < 4 << 20 && small.rows.bytes <= small.rows.bytes_max, "{:?}", small.rows);
    assert!(small.memory.total() <= 8 << 20, "{:?}", small.memory);
    // Filters and indexes come first.
    db.set_index_bytes_max(0);
    read_all();
    assert_eq!(db.stats().rows.bytes_max, 0);
    db.set_memory_bytes_max(None).unwrap();
    read_all();
    let reads = page_reads(&db);
    read_all();
    assert_eq!(page_reads(&db), reads);
}

/// A change of the items, or of how they are stored.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32),
    InsertExpired(u32),
    Remove(u32),
    Append(u32),
    Increment,
    Ingest(u32),
    DeletePrefix(u32),
    Clear,
    Flush,
    Compact,
    WorkInBackground,
    Reopen,
}

const KEYS: u32 = 24;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KEYS).prop_map(Step::Insert),
        1 => (0..KEYS).prop_map(Step::InsertExpired),
        4 => (0..KEYS).prop_map(Step::Remove),
        2 => (0..KEYS).prop_map(Step::Append),
        2 => Just(Step::Increment),
        2 => (0..KEYS).prop_map(Step::Ingest),
        1 => (0..3_u32).prop_map(Step::DeletePrefix),
        1 => Just(Step::Clear),
        6 => Just(Step::Flush),
        2 => Just(Step::Compact),
        3 => Just(Step::WorkInBackground),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Before and after each step all keys are looked up, so each has a row, present or absent, that the step could
    /// make obsolete.
    #[test]
    fn rows_are_never_older_than_items(steps in prop::collection::vec(step(), 1..60), is_sorted: bool) {
        let directory = tempfile::tempdir().unwrap();
        let open = || {
            let builder = Db::builder(directory.path()).durability(Durability::Buffered).background(false);
            let db = builder.inline_bytes_max(300).row_cache_bytes_max(128 << 10).open().unwrap();
            let options = match is_sorted {
                true => KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' }),
                false => KeyspaceOptions::default(),
            };
            let keyspace = db.keyspace_with("k", &options).unwrap();
            (db, keyspace)
        };
        let (mut db, mut keyspace) = open();
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for (number, &step) in (0..).zip(&steps) {
            let counter = key(KEYS);
            match step {
                Step::Insert(at) => {
                    keyspace.insert(key(at), value(at, number)).unwrap();
                    model.insert(key(at), value(at, number));
                }
                Step::InsertExpired(at) => {
                    let metadata = Metadata { expires_at_ms: Some(1), ..Metadata::default() };
                    keyspace.insert_with(key(at), value(at, number), metadata).unwrap();
                    model.remove(&key(at));
                }
                Step::Remove(at) => {
                    keyspace.remove(key(at)).unwrap();
                    model.remove(&key(at));
                }
                Step::Append(at) => {
                    keyspace.append(key(at), b"more").unwrap();
                    model.entry(key(at)).or_default().extend_from_slice(b"more");
                }
                Step::Increment => {
                    let sum = keyspace.increment(&counter, 3).unwrap();
                    model.insert(counter, sum.to_le_bytes().to_vec());
                }
                Step::Ingest(first) => {
                    let mut ingest = keyspace.ingest().unwrap();
                    for at in (first..KEYS).step_by(5) {
                        ingest.insert(key(at), value(at, number)).unwrap();
                        model.insert(key(at), value(at, number));
                    }
                    ingest.finish().unwrap();
                }
                Step::DeletePrefix(group) if is_sorted => {
                    let prefix = format!("g{group}").into_bytes();
                    keyspace.delete_prefix(&prefix).unwrap();
                    model.retain(|key, _| !key.starts_with(&prefix));
                }
                Step::DeletePrefix(_) => {}
                Step::Clear => {
                    keyspace.clear().unwrap();
                    model.clear();
                }
                Step::Flush => db.flush().unwrap(),
                Step::Compact => db.compact().unwrap(),
                Step::WorkInBackground => drop(db.run_background_job().unwrap()),
                Step::Reopen => {
                    db.persist().unwrap();
                    drop((keyspace, db));
                    (db, keyspace) = open();
                }
            }
            let keys: Vec<_> = (0..=KEYS).map(key).collect();
            for key in &keys {
                let found = keyspace.get(key).unwrap();
                prop_assert_eq!(found.as_ref(), model.get(key), "after {:?}", step);
            }
            let expected: Vec<_> = keys.iter().map(|key| model.get(key).cloned()).collect();
            prop_assert_eq!(keyspace.multi_get(&keys).unwrap(), expected);
            for group in (0..3).filter(|_| is_sorted) {
                let prefix = format!("g{group}");
                let found: BTreeMap<_, _> = keyspace.scan_prefix(&prefix).unwrap().map(Result::unwrap).collect();
                let mut expected = model.clone();
                expected.retain(|key, _| key.starts_with(prefix.as_bytes()));
                prop_assert_eq!(found, expected, "after {:?}", step);
            }
        }
    }
}

#[test]
fn a_row_of_an_item_that_expires_is_of_no_use_after_that() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let expiry = now + Duration::from_millis(1_500);
    let metadata = Metadata { flags: 9, expires_at_ms: Some(expiry.as_millis() as u64) };
    keyspace.insert_with("key", "value", metadata).unwrap();
    db.flush().unwrap();
    let found = Some((b"value".to_vec(), metadata));
    // The second time from a row, unless the machine was slow.
    for _ in 0..2 {
        let got = keyspace.get_with_metadata("key").unwrap();
        assert!(got == found || got.is_none(), "{got:?}");
    }
    while std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap() < expiry {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(keyspace.get("key").unwrap(), None);
}
