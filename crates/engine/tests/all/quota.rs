//! Limits of space and rate, and what happens to a database whose disk fails or is full.

use std::sync::Arc;
use std::time::Duration;

use alluvium::{Db, Durability, Environment, Error, Health, LevelsPlan, Plan};
use alluvium_io::{Clock as _, FaultPlan, SimulatedClock, SimulatedStorage};

fn plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 400;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn builder(storage: &SimulatedStorage, clock: &SimulatedClock) -> alluvium::Builder {
    let environment = Environment::over(Arc::new(storage.clone()));
    let environment = Environment { clock: Arc::new(clock.clone()), random_seed: 5, ..environment };
    Db::builder("limited").plan(plan()).background(false).environment(environment)
}

fn open(storage: &SimulatedStorage) -> Db {
    builder(storage, &SimulatedClock::default()).open().unwrap()
}

fn disk_bytes(storage: &SimulatedStorage) -> u64 {
    storage.contents().values().map(|bytes| bytes.len() as u64).sum()
}

#[test]
fn writes_stop_before_the_limit_and_removals_make_room() {
    const MAX: u64 = 6 << 20;
    let storage = SimulatedStorage::new(1);
    // The device has no more space than the limit: background work that needed more would fail.
    storage.set_faults(FaultPlan { quota_bytes: Some(MAX), ..FaultPlan::default() });
    let db = builder(&storage, &SimulatedClock::default())
        .durability(Durability::Buffered)
        .disk_bytes_max(MAX)
        .open()
        .unwrap();
    let items = db.keyspace("items").unwrap();
    let mut written = 0u32;
    let refusal = loop {
        match items.insert(written.to_le_bytes(), [7; 200]) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        if written.is_multiple_of(50) {
            db.wait_idle().unwrap();
        }
    };
    assert!(matches!(refusal, Error::DiskQuota { used, max: MAX } if used > MAX), "{refusal}");
    assert!(written > 5_000, "{written} items fit");
    assert_eq!(db.health(), Health::Healthy);
    assert_eq!(items.get(0u32.to_le_bytes()).unwrap().unwrap(), [7; 200]);
    let mut batch = db.batch();
    batch.insert(&items, "a", "b");
    assert!(matches!(batch.commit(), Err(Error::DiskQuota { .. })));
    for number in 0..written / 2 {
        items.remove(number.to_le_bytes()).unwrap();
        if number.is_multiple_of(50) {
            db.wait_idle().unwrap();
        }
    }
    db.compact().unwrap();
    items.insert("again", "there is room").unwrap();
    assert!(disk_bytes(&storage) < MAX);
    db.set_disk_bytes_max(Some(1));
    assert!(matches!(items.insert("more", ""), Err(Error::DiskQuota { .. })));
    db.set_disk_bytes_max(None);
    items.insert("more", "").unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn a_full_disk_is_told_and_left_behind() {
    for quota in (200..1_200).step_by(37).map(|kib| kib << 10) {
        let storage = SimulatedStorage::new(quota);
        storage.set_faults(FaultPlan { quota_bytes: Some(quota), ..FaultPlan::default() });
        let db = open(&storage);
        let Ok(items) = db.keyspace("items") else { continue };
        let mut acknowledged = 0u32;
        while items.insert(acknowledged.to_le_bytes(), [7; 200]).is_ok() {
            acknowledged += 1;
            // Without space for a merge the log continues.
            if acknowledged.is_multiple_of(50)
                && let Err(error) = db.wait_idle()
            {
                assert!(matches!(error, Error::DiskFull { .. }), "{error}");
            }
        }
        let Health::DiskFull { reason } = db.health() else { panic!("{:?}", db.health()) };
        assert!(!reason.is_empty());
        assert!(matches!(items.insert("x", "y"), Err(Error::DiskFull { .. })));
        for number in (0..acknowledged).step_by(7) {
            assert_eq!(items.get(number.to_le_bytes()).unwrap().as_deref(), Some(&[7; 200][..]));
        }
        assert!(matches!(db.resume(), Ok(()) | Err(Error::DiskFull { .. })));
        storage.set_faults(FaultPlan::default());
        db.resume().unwrap();
        assert_eq!(db.health(), Health::Healthy);
        assert!(db.stats().failures.times_full > 0 && db.stats().failures.times_resumed > 0);
        items.insert("x", "y").unwrap();
        db.compact().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        storage.crash();
        drop((items, db));
        let db = open(&storage.reopen());
        let items = db.keyspace("items").unwrap();
        for number in 0..acknowledged {
            assert_eq!(items.get(number.to_le_bytes()).unwrap().as_deref(), Some(&[7; 200][..]));
        }
        assert_eq!(items.get("x").unwrap().as_deref(), Some(&b"y"[..]));
    }
}

#[test]
fn after_a_failed_sync_of_what_counts_only_an_opening_helps() {
    let mut tables = 0;
    for sync in 0..40 {
        let storage = SimulatedStorage::new(sync);
        let db = open(&storage);
        let items = db.keyspace("items").unwrap();
        storage.set_faults(FaultPlan { fail_sync: Some(sync), ..FaultPlan::default() });
        let mut acknowledged = 0u32;
        while acknowledged < 30 && items.insert(acknowledged.to_le_bytes(), [7; 50]).is_ok() {
            acknowledged += 1;
        }
        if acknowledged == 30 && db.compact().is_ok() {
            continue;
        }
        if db.health() == Health::Healthy {
            // The sync was that of a table that nothing needed yet, and that no longer exists.
            db.compact().unwrap();
            tables += 1;
            continue;
        }
        assert!(matches!(db.health(), Health::Failed { .. }), "sync {sync}: {:?}", db.health());
        assert!(matches!(db.resume(), Err(Error::Failed { .. })));
        assert!(matches!(items.insert("x", "y"), Err(Error::Failed { .. })));
        storage.crash();
        drop((items, db));
        let db = open(&storage.reopen());
        assert_eq!(db.health(), Health::Healthy);
        let items = db.keyspace("items").unwrap();
        for number in 0..acknowledged {
            assert!(items.contains_key(number.to_le_bytes()).unwrap(), "sync {sync}: item {number}");
        }
    }
    assert!((1..5).contains(&tables), "{tables} syncs were of tables");
}

#[test]
fn merges_take_as_long_as_the_limit_says() {
    let (storage, clock) = (SimulatedStorage::new(1), SimulatedClock::default());
    let db = builder(&storage, &clock)
        .durability(Durability::Buffered)
        .background_bytes_per_s_max(1 << 20)
        .open()
        .unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..8_000u32 {
        items.insert(number.to_le_bytes(), [7; 250]).unwrap();
    }
    db.flush().unwrap();
    let start = clock.monotonic();
    db.compact().unwrap();
    let limited = clock.monotonic() - start;
    assert!(limited > Duration::from_secs(1), "{limited:?}");
    db.set_background_bytes_per_s_max(None);
    items.insert("x", "y").unwrap();
    let start = clock.monotonic();
    db.compact().unwrap();
    assert_eq!(clock.monotonic(), start);
}
