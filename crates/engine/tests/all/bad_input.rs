//! Bad input, foreign and damaged directories: each gets its own clear error.

use std::fs;
use std::path::Path;

use alluvium::{
    Db, Durability, Error, KEY_BYTES_MAX, KeyspaceOptions, LevelsPlan, Metadata, Plan, PrefixRule,
    VALUE_BYTES_MAX,
};

fn open(path: &Path) -> Result<Db, Error> {
    Db::builder(path).durability(Durability::Buffered).open()
}

/// A closed database with a table of each kind.
fn filled(path: &Path) {
    let db = open(path).unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..2000u32 {
        items.insert(number.to_le_bytes(), [7; 50]).unwrap();
    }
    db.compact().unwrap();
    for number in 0..500u32 {
        items.insert(number.to_le_bytes(), [8; 50]).unwrap();
    }
    db.flush().unwrap();
    drop(items);
    db.close().unwrap();
}

fn files(path: &Path, prefix: &str) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix)).collect()
}

#[test]
fn keys_and_items_beyond_the_limits_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let items = open(directory.path()).unwrap().keyspace("items").unwrap();
    let error = items.insert(vec![0; KEY_BYTES_MAX + 1], b"").unwrap_err();
    assert!(matches!(error, Error::KeyTooLarge { len, max } if len == max + 1), "{error}");
    let too_long = vec![0; VALUE_BYTES_MAX + 1];
    let error = items.insert(b"key", &too_long).unwrap_err();
    assert!(matches!(error, Error::ValueTooLarge { len, max } if len == max + 1), "{error}");
    let error = items.insert_reader(b"key", too_long.len(), &too_long[..], Metadata::default()).unwrap_err();
    assert!(matches!(error, Error::ValueTooLarge { .. }), "{error}");
    assert!(matches!(items.remove(vec![0; KEY_BYTES_MAX + 1]), Err(Error::KeyTooLarge { .. })));
    assert_eq!(items.get(vec![0; KEY_BYTES_MAX + 1]).unwrap(), None);
}

#[test]
fn the_empty_key_and_the_empty_value_are_items() {
    let directory = tempfile::tempdir().unwrap();
    let items = open(directory.path()).unwrap().keyspace("items").unwrap();
    assert_eq!(items.get(b"").unwrap(), None);
    items.insert(b"", b"").unwrap();
    assert_eq!(items.get(b"").unwrap(), Some(Vec::new()));
}

#[test]
fn a_batch_beyond_a_segment_is_refused_whole() {
    let directory = tempfile::tempdir().unwrap();
    let LevelsPlan { sharding, mut log, levels } = LevelsPlan::silt();
    log.segment_bytes_max = 64 << 10;
    let plan = Plan::Levels(LevelsPlan { sharding, log, levels });
    let db = Db::builder(directory.path()).plan(plan).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let mut batch = db.batch();
    for number in 0..1000u32 {
        batch.insert(&items, number.to_le_bytes(), [1; 100]);
    }
    let error = batch.commit().unwrap_err();
    assert!(matches!(error, Error::BatchTooLarge { len, max } if len > max), "{error}");
    assert_eq!(items.iter().count(), 0);
}

#[test]
fn an_illegal_plan_is_refused_with_its_reason() {
    let directory = tempfile::tempdir().unwrap();
    let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
    levels.pop();
    let plan = Plan::Levels(LevelsPlan { sharding, log, levels });
    let error = Db::builder(directory.path()).plan(plan).open().unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error}");
}

#[test]
fn a_plan_that_would_be_ignored_in_part_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    // Items of a prefix are anywhere in a chained log.
    let options =
        KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: 4 }).with_plan(Plan::skimpystash());
    let error = open(directory.path()).unwrap().keyspace_with("grouped", &options).unwrap_err();
    assert!(matches!(error, Error::Plan(_)), "{error}");
}

#[test]
fn damaged_device_figures_are_reported_and_not_planned_with() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(alluvium::device::DEVICE), b"ALVMDEV\0 nonsense").unwrap();
    let db = open(directory.path()).unwrap();
    assert!(matches!(db.keyspace("items"), Err(Error::Corruption(_))));
}

#[test]
fn a_keyspace_without_a_plan_gets_one_that_stays() {
    let directory = tempfile::tempdir().unwrap();
    let planned = |items: u64| {
        let db = Db::builder(directory.path()).expected_items(items).open().unwrap();
        db.keyspace("items").unwrap().plan()
    };
    let plan = planned(10_000_000);
    plan.check_executable().unwrap();
    // Another number of items at a later opening does not change what exists.
    assert_eq!(planned(100_000), plan);
    let db = open(directory.path()).unwrap();
    assert_eq!(db.keyspace("items").unwrap().plan(), plan);
}

#[test]
fn a_keyspace_name_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path()).unwrap();
    for name in ["", "a\nb", &"x".repeat(256)] {
        assert!(matches!(db.keyspace(name), Err(Error::KeyspaceName { .. })));
    }
}

#[test]
fn a_second_opening_is_told_who_holds_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let first = open(directory.path()).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    drop(first);
    open(directory.path()).unwrap();
}

#[test]
fn a_directory_of_other_files_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("holiday.jpg"), b"sun").unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    let empty = tempfile::tempdir().unwrap();
    let error = Db::builder(empty.path()).create(false).open().unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
}

#[test]
fn a_missing_table_is_named() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    for table in files(directory.path(), "table-") {
        let copy = fs::read(&table).unwrap();
        fs::remove_file(&table).unwrap();
        let error = open(directory.path()).unwrap_err();
        let name = table.file_name().unwrap().to_string_lossy().into_owned();
        assert!(matches!(&error, Error::MissingFile { file } if *file == name), "{error}");
        fs::write(&table, copy).unwrap();
    }
    open(directory.path()).unwrap();
}

#[test]
fn a_missing_or_damaged_manifest_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let current = directory.path().join("CURRENT");
    let name = fs::read(&current).unwrap();
    fs::remove_file(&current).unwrap();
    assert!(matches!(open(directory.path()), Err(Error::NotADatabase { .. })));
    fs::write(&current, b"manifest-000001\n").unwrap();
    assert!(matches!(open(directory.path()), Err(Error::Corruption(_))));
    fs::write(&current, name).unwrap();
    let manifest = files(directory.path(), "manifest-").remove(0);
    let content = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    assert!(matches!(open(directory.path()), Err(Error::MissingFile { .. })));
    let mut newer = content.clone();
    newer[8] = 9;
    fs::write(&manifest, newer).unwrap();
    assert!(matches!(open(directory.path()), Err(Error::NewerFormat { found: 9, .. })));
    fs::write(&manifest, &content[..100]).unwrap();
    assert!(matches!(open(directory.path()), Err(Error::Corruption(_))));
    fs::write(&manifest, content).unwrap();
    open(directory.path()).unwrap();
}

#[test]
fn a_truncated_or_damaged_table_is_an_error_and_never_wrong_data() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    for table in files(directory.path(), "table-") {
        let content = fs::read(&table).unwrap();
        fs::write(&table, &content[..content.len() / 2]).unwrap();
        // Tables are read when they are first used.
        let used = open(directory.path()).and_then(|db| db.keyspace("items")?.get("any"));
        let error = used.unwrap_err();
        assert!(matches!(error, Error::Corruption(_)), "{error}");
        for at in (4096..content.len()).step_by(2003) {
            let mut damaged = content.clone();
            damaged[at] ^= 4;
            fs::write(&table, damaged).unwrap();
            let Ok(db) = open(directory.path()) else { continue };
            let items = db.keyspace("items").unwrap();
            for number in (0..2000u32).step_by(3) {
                let expected = vec![if number < 500 { 8 } else { 7 }; 50];
                match items.get(number.to_le_bytes()) {
                    Ok(value) => assert_eq!(value, Some(expected), "byte {at} of {}", table.display()),
                    Err(error) => assert!(matches!(error, Error::Corruption(_)), "{error}"),
                }
            }
        }
        fs::write(&table, content).unwrap();
    }
}

#[test]
fn a_closed_database_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    let items = db.keyspace("items").unwrap();
    items.insert(b"key", b"value").unwrap();
    db.close().unwrap();
    assert!(matches!(items.insert(b"key", b"other"), Err(Error::Closed)));
    assert!(matches!(items.get(b"key"), Err(Error::Closed)));
}

/// After a clean close the manifest records how far the log extends, so no part of it can be lost undetected.
#[test]
fn a_missing_truncated_or_damaged_log_is_an_error_and_never_wrong_data() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path()).unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..300u32 {
        items.insert(number.to_le_bytes(), [7; 50]).unwrap();
    }
    db.close().unwrap();
    drop(items);
    let kept: Vec<_> =
        files(directory.path(), "").into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect();
    let restore = || {
        for path in files(directory.path(), "") {
            fs::remove_file(path).unwrap();
        }
        kept.iter().for_each(|(content, path)| fs::write(path, content).unwrap());
    };
    let is_noticed = || match open(directory.path()) {
        Err(error) => {
            assert!(matches!(error, Error::Corruption(_) | Error::Damaged { .. }), "{error}");
            true
        }
        Ok(db) => {
            let items = db.keyspace("items").unwrap();
            for number in 0..300u32 {
                assert_eq!(items.get(number.to_le_bytes()).unwrap().as_deref(), Some(&[7; 50][..]));
            }
            false
        }
    };
    let mut noticed = 0;
    for log in files(directory.path(), "log-") {
        let content = fs::read(&log).unwrap();
        fs::remove_file(&log).unwrap();
        noticed += u32::from(is_noticed());
        restore();
        fs::write(&log, &content[..content.len().min(9000)]).unwrap();
        noticed += u32::from(is_noticed());
        restore();
        for at in (0..content.len().min(30_000)).step_by(701) {
            let mut damaged = content.clone();
            damaged[at] ^= 16;
            fs::write(&log, damaged).unwrap();
            noticed += u32::from(is_noticed());
            restore();
        }
    }
    assert!(noticed > 20, "noticed {noticed}");
    assert!(!is_noticed());
}
