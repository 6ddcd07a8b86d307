//! A full disk is left behind: removals work, background work waits for space, and writes are accepted again with room.

use std::sync::Arc;

use crate::failing::{
    garbage, insert_once_there_is_room, number, open, plan, used_bytes, write_until_it_fails,
};
use alluvium::{Db, Durability, Environment, Error, Health};
use alluvium_io::SimulatedStorage;

#[test]
fn removals_and_clearing_work_on_a_full_disk_and_make_room() {
    for durability in [Durability::Buffered, Durability::Sync] {
        for seed in 0..10 {
            let storage = SimulatedStorage::new(seed);
            let (db, items) = open(&storage, durability);
            let others = db.keyspace("others").unwrap();
            others.insert("kept", "value").unwrap();
            storage.set_quota(Some(used_bytes(&storage) + 300_000 + seed * 1_000));
            let (acknowledged, error) = write_until_it_fails(&items, &[7; 200]);
            assert!(matches!(error, Error::DiskFull { .. }), "{error}");
            assert!(matches!(db.health(), Health::DiskFull { .. }), "{:?}", db.health());
            // Other programs happen to fill the space that was left.
            storage.set_quota(Some(used_bytes(&storage)));
            for item in 0..100.min(acknowledged) {
                items.remove(number(item)).unwrap();
                assert_eq!(items.get(number(item)).unwrap(), None);
            }
            let mut batch = db.batch();
            batch.remove(&items, number(100));
            batch.commit().unwrap();
            assert!(matches!(items.insert("x", "y"), Err(Error::DiskFull { .. })));
            assert!(matches!(items.increment("n", 1), Err(Error::DiskFull { .. })));
            assert!(items.contains_key(number(acknowledged - 1)).unwrap());
            assert!(matches!(db.keyspace("new"), Err(Error::DiskFull { .. })));
            match seed % 2 {
                0 => items.clear().unwrap(),
                _ => assert!(db.drop_keyspace("items").unwrap()),
            }
            // Without a call of `resume`, background work finds that there is room.
            storage.set_quota(Some(used_bytes(&storage) + 800_000));
            while db.run_background_job().unwrap() {}
            assert_eq!(db.health(), Health::Healthy);
            others.insert("more", "value").unwrap();
            db.close().unwrap();
            storage.crash();
            drop((items, others));
            let (db, items) = open(&storage.reopen(), durability);
            assert_eq!(items.iter().count(), 0);
            assert_eq!(db.keyspace("others").unwrap().iter().count(), 2);
            assert!(db.verify().unwrap().problems.is_empty());
        }
    }
}

#[test]
fn large_items_find_the_disk_full_too_and_go_on_later() {
    let storage = SimulatedStorage::new(1);
    let (db, items) = open(&storage, Durability::Buffered);
    storage.set_quota(Some(used_bytes(&storage) + 1_000_000));
    for len in [5_000, 40_000] {
        let (acknowledged, error) = write_until_it_fails(&items, &vec![3; len]);
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        for item in 0..acknowledged {
            assert_eq!(items.get(number(item)).unwrap().unwrap(), vec![3; len]);
        }
        storage.set_quota(Some(used_bytes(&storage) + 20_000_000));
        db.resume().unwrap();
        items.insert("large", vec![4; len]).unwrap();
        assert_eq!(items.get("large").unwrap().unwrap(), vec![4; len]);
    }
    storage.set_quota(None);
    db.compact().unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn an_orderly_stop_on_a_full_disk_keeps_what_was_acknowledged() {
    for seed in 0..20 {
        let storage = SimulatedStorage::new(seed);
        let (db, items) = open(&storage, Durability::Buffered);
        storage.set_quota(Some(used_bytes(&storage) + 200_000 + seed * 10_000));
        let (acknowledged, _) = write_until_it_fails(&items, &[7; 200]);
        // No room except the reserve.
        storage.set_quota(Some(used_bytes(&storage)));
        db.close().unwrap();
        storage.crash();
        drop(items);
        let storage = storage.reopen();
        let (_, items) = open(&storage, Durability::Buffered);
        for item in 0..acknowledged {
            assert!(items.contains_key(number(item)).unwrap(), "seed {seed}: item {item} of {acknowledged}");
        }
    }
}

#[test]
fn a_database_opens_on_a_full_disk_with_what_was_reserved() {
    let storage = SimulatedStorage::new(1);
    let (db, items) = open(&storage, Durability::Sync);
    items.insert("key", "value").unwrap();
    db.close().unwrap();
    drop(items);
    storage.set_quota(Some(used_bytes(&storage)));
    let (db, items) = open(&storage, Durability::Sync);
    assert!(matches!(db.health(), Health::DiskFull { .. }), "{:?}", db.health());
    assert_eq!(items.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(matches!(items.insert("more", "value"), Err(Error::DiskFull { .. })));
    items.remove("key").unwrap();
    storage.set_quota(None);
    assert!(db.run_background_job().unwrap());
    items.insert("more", "value").unwrap();
}

/// With threads: the database recovers from a full disk automatically.
#[test]
fn threads_find_that_there_is_room_again() {
    let storage = SimulatedStorage::new(1);
    let environment = Environment::over(Arc::new(storage.clone()));
    let builder = Db::builder("failing").plan(plan()).durability(Durability::Sync);
    let db = builder.environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    storage.set_quota(Some(400_000));
    let (acknowledged, error) = write_until_it_fails(&items, &[7; 200]);
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    items.remove(number(0)).unwrap();
    storage.set_quota(None);
    insert_once_there_is_room(&items, "later", b"value");
    db.close().unwrap();
    storage.crash();
    drop(items);
    let (_, items) = open(&storage.reopen(), Durability::Sync);
    assert!(!items.contains_key(number(0)).unwrap());
    for item in 1..acknowledged {
        assert!(items.contains_key(number(item)).unwrap());
    }
}

/// Tables find no space while the log does: writes continue, and the work that lacked space is done once there is more.
#[test]
fn without_space_for_tables_the_log_goes_on() {
    let storage = SimulatedStorage::new(1);
    let (db, items) = open(&storage, Durability::Sync);
    for item in 0..1_000 {
        items.insert(number(item), [1; 100]).unwrap();
    }
    db.compact().unwrap();
    // Less than the space that background work leaves to the log.
    storage.set_quota(Some(used_bytes(&storage) + 6_000));
    for item in 0..300 {
        items.insert(number(item), [2; 100]).unwrap();
        if item % 100 == 0 {
            for outcome in [db.flush(), db.compact(), db.wait_idle()] {
                assert!(matches!(outcome, Err(Error::DiskFull { .. })), "{outcome:?}");
            }
            assert_eq!(db.health(), Health::Healthy);
            assert!(garbage(&storage).is_empty(), "{:?}", garbage(&storage));
        }
    }
    let mut ingest = items.ingest().unwrap();
    let outcome = (0..50_000).try_for_each(|item| ingest.insert(number(item), [3; 100]));
    let outcome = outcome.and_then(|()| ingest.finish());
    assert!(matches!(outcome, Err(Error::DiskFull { .. })), "{outcome:?}");
    assert_eq!(db.health(), Health::Healthy);
    storage.set_quota(None);
    db.compact().unwrap();
    for item in 0..1_000 {
        assert_eq!(items.get(number(item)).unwrap().unwrap(), [1 + u8::from(item < 300); 100]);
    }
    assert_eq!(db.stats().failures.times_full, 0);
}

/// With threads: the same, until the log is full; then removals still work.
#[test]
fn threads_wait_for_space_and_the_log_goes_on() {
    let storage = SimulatedStorage::new(1);
    let environment = Environment::over(Arc::new(storage.clone()));
    let builder = Db::builder("failing").plan(plan()).durability(Durability::Sync);
    let db = builder.environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    for item in 0..2_000 {
        items.insert(number(item), [1; 100]).unwrap();
    }
    db.wait_idle().unwrap();
    storage.set_quota(Some(used_bytes(&storage) + 300_000));
    let mut written = 0;
    while db.health() == Health::Healthy {
        items.insert(number(written), [2; 100]).unwrap();
        written += 1;
    }
    assert!(matches!(db.health(), Health::Retrying { .. }), "{:?}", db.health());
    items.insert("taken", "while conversions lack space").unwrap();
    let error = db.wait_idle().unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    let (more, error) = write_until_it_fails(&items, &[3; 100]);
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    items.remove("taken").unwrap();
    storage.set_quota(None);
    insert_once_there_is_room(&items, "later", b"value");
    db.wait_idle().unwrap();
    assert_eq!(db.health(), Health::Healthy);
    assert!(!items.contains_key("taken").unwrap());
    for item in 0..2_000 {
        let expected = if item < more { 3 } else { 1 + u8::from(item < written) };
        assert_eq!(items.get(number(item)).unwrap().unwrap(), [expected; 100], "item {item}");
    }
}

/// With threads: large items fill the disk, and their removal makes room without any other help.
#[test]
fn removed_large_items_make_room_on_a_full_disk() {
    for way in ["remove", "clear", "drop"] {
        let storage = SimulatedStorage::new(1);
        let environment = Environment::over(Arc::new(storage.clone()));
        let builder = Db::builder("failing").plan(plan()).durability(Durability::Sync);
        let builder = builder.blob_sizes(256 << 10, 16 << 10, 8 << 10);
        let db = builder.environment(environment).open().unwrap();
        let (items, others) = (db.keyspace("items").unwrap(), db.keyspace("others").unwrap());
        storage.set_quota(Some(used_bytes(&storage) + 8_000_000));
        let (written, error) = write_until_it_fails(&items, &vec![3; 20_000]);
        assert!(matches!(error, Error::DiskFull { .. }), "{error}");
        match way {
            "remove" => (0..written).for_each(|item| items.remove(number(item)).unwrap()),
            "clear" => items.clear().unwrap(),
            _ => assert!(db.drop_keyspace("items").unwrap()),
        }
        insert_once_there_is_room(&others, "later", &vec![4; 20_000]);
    }
}
