//! Failures by class: what never reached the device passes, and only failed writes and syncs of what counts are final.

use std::sync::Arc;

use crate::failing::{garbage, number, open, plan, without_descriptors, write_until_it_fails};
use alluvium::{Db, Durability, Environment, Error, Health};
use alluvium_io::{FaultPlan, SimulatedStorage};

#[test]
fn running_out_of_descriptors_fails_one_operation_and_passes() {
    for durability in [Durability::Buffered, Durability::Sync] {
        let storage = SimulatedStorage::new(1);
        let (db, items) = open(&storage, durability);
        without_descriptors(&storage);
        let (acknowledged, error) = write_until_it_fails(&items, &[7; 200]);
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(acknowledged > 100);
        assert_eq!(db.health(), Health::Healthy);
        // What was refused has no effect, now or after a restart.
        assert_eq!(items.get(number(acknowledged)).unwrap(), None);
        storage.set_faults(FaultPlan::default());
        items.insert("later", "value").unwrap();
        db.close().unwrap();
        storage.crash();
        drop(items);
        let (_, items) = open(&storage.reopen(), durability);
        for item in 0..acknowledged {
            assert!(items.contains_key(number(item)).unwrap(), "{durability:?}: item {item}");
        }
        assert!(items.contains_key("later").unwrap() && !items.contains_key(number(acknowledged)).unwrap());
    }
}

#[test]
fn an_orderly_stop_without_descriptors_loses_nothing() {
    for small in [20_u32, 2_000] {
        let storage = SimulatedStorage::new(1);
        let (db, items) = open(&storage, Durability::Buffered);
        let mut acknowledged = 0;
        while acknowledged < small {
            items.insert(number(acknowledged), [7; 200]).unwrap();
            acknowledged += 1;
        }
        without_descriptors(&storage);
        let (more, _) = write_until_it_fails(&items, &[8; 200]);
        db.close().unwrap();
        storage.crash();
        drop(items);
        let (_, items) = open(&storage.reopen(), Durability::Buffered);
        for item in 0..acknowledged.max(more) {
            assert!(items.contains_key(number(item)).unwrap(), "item {item} of {acknowledged} and {more}");
        }
    }
}

#[test]
fn background_work_that_fails_leaves_nothing_and_is_done_later() {
    let storage = SimulatedStorage::new(1);
    let (db, items) = open(&storage, Durability::Buffered);
    let faults = |faults: FaultPlan| {
        storage.set_faults(faults);
        if db.compact().is_ok() {
            return false;
        }
        assert_eq!(db.health(), Health::Healthy);
        assert!(garbage(&storage).is_empty(), "{:?}", garbage(&storage));
        true
    };
    let mut failed = [0; 3];
    for round in 0..40_u64 {
        for item in 0..600_u32 {
            items.insert(number(item * 7 + round as u32), [round as u8; 60]).unwrap();
        }
        let opens = FaultPlan { fail_opens: Some(round..round + 1), ..FaultPlan::default() };
        let reads = FaultPlan { fail_read: Some(round), ..FaultPlan::default() };
        failed[0] += u32::from(faults(opens));
        failed[1] += u32::from(faults(reads));
        storage.set_faults(FaultPlan::default());
        db.compact().unwrap();
        failed[2] += 1;
    }
    assert!(failed.iter().all(|&times| times > 0), "{failed:?}");
    assert!(db.verify().unwrap().problems.is_empty());
    assert_eq!(items.get(number(39)).unwrap().unwrap(), [39; 60]);
}

#[test]
fn a_failed_write_of_the_log_is_final() {
    let storage = SimulatedStorage::new(1);
    let (db, items) = open(&storage, Durability::Sync);
    items.insert("key", "value").unwrap();
    storage.set_faults(FaultPlan { fail_write: Some(0), ..FaultPlan::default() });
    assert!(items.insert("lost", "value").is_err());
    assert!(matches!(db.health(), Health::Failed { .. }));
    for outcome in [items.insert("x", "y"), items.remove("key"), items.clear(), db.flush(), db.resume()] {
        assert!(matches!(outcome, Err(Error::Failed { .. })));
    }
    assert_eq!(items.get("key").unwrap().as_deref(), Some(&b"value"[..]));
    assert!(matches!(db.close(), Err(Error::Failed { .. })));
    assert!(matches!(items.get("key"), Err(Error::Closed)));
}

/// With threads: they retry automatically, and no caller hangs meanwhile.
#[test]
fn threads_retry_until_descriptors_are_back_and_writers_are_told() {
    let storage = SimulatedStorage::new(1);
    let environment = Environment::over(Arc::new(storage.clone()));
    let builder = Db::builder("failing").plan(plan()).durability(Durability::Buffered);
    let db = builder.environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    items.insert("first", "value").unwrap();
    // Files of the log are reused, so only conversions need descriptors.
    db.flush().unwrap();
    without_descriptors(&storage);
    let mut acknowledged = 0_u32;
    let error = loop {
        match items.insert(number(acknowledged), [7; 200]) {
            Ok(()) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Stalled { .. } | Error::Io { .. }), "{error}");
    while db.health() == Health::Healthy {
        std::thread::yield_now();
    }
    assert!(matches!(db.health(), Health::Retrying { .. }), "{:?}", db.health());
    storage.set_faults(FaultPlan::default());
    db.resume().unwrap();
    while let Err(error) = items.insert("later", "value") {
        assert!(matches!(error, Error::Stalled { .. }), "{error}");
    }
    while db.health() != Health::Healthy {
        std::thread::yield_now();
    }
    assert!(db.stats().failures.retries > 0);
    for item in 0..acknowledged {
        assert!(items.contains_key(number(item)).unwrap());
    }
}

/// A manifest record that a failed sync left in the system's memory is read by the next opening, and is gone after a
/// power cut. So an opening removes no table because of it before its own manifest is durable.
#[test]
fn an_opening_removes_nothing_that_a_power_cut_may_need() {
    for (failing, crash) in (0..24).flat_map(|failing| (0..14).map(move |crash| (failing, crash))) {
        let storage = SimulatedStorage::new(failing * 31 + crash);
        let (db, items) = open(&storage, Durability::Sync);
        for round in 0..3_u8 {
            (0..50).for_each(|item| items.insert(number(item), [round; 100]).unwrap());
            db.flush().unwrap();
        }
        storage.set_faults(FaultPlan { fail_sync: Some(failing), ..FaultPlan::default() });
        let _ = db.compact();
        let storage = storage.reopen();
        drop((db, items));
        storage.set_faults(FaultPlan { crash_before_operation: Some(crash), ..FaultPlan::default() });
        let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(storage.clone())) };
        drop(Db::builder("failing").plan(plan()).background(false).environment(environment).open());
        let (db, items) = open(&storage.reopen(), Durability::Sync);
        (0..50).for_each(|item| assert_eq!(items.get(number(item)).unwrap().unwrap(), [2; 100]));
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

/// After a failed sync the system's memory shows what the device does not have, and writes none of it. So an opening
/// after the death of the process writes again what it found, in the log and in blob files, and a power cut takes
/// nothing away that the opening has shown.
#[test]
fn an_opening_makes_durable_what_a_failed_sync_left_in_memory() {
    for seed in 0..60 {
        let storage = SimulatedStorage::new(seed);
        let (db, items) = open(&storage, Durability::Sync);
        items.insert("first", [1; 20_000]).unwrap();
        storage.set_faults(FaultPlan { fail_sync: Some(seed % 8), ..FaultPlan::default() });
        let sizes = [100, 20_000, 3_000_000];
        while (0..90_u32).all(|item| items.insert(number(item), vec![7; sizes[item as usize % 3]]).is_ok()) {}
        let storage = storage.reopen();
        drop((db, items));
        let (db, items) = open(&storage, Durability::Sync);
        let found: Vec<_> = (0..90).map(|item| items.get(number(item)).unwrap()).collect();
        storage.crash();
        drop((db, items));
        let (db, items) = open(&storage.reopen(), Durability::Sync);
        for (item, found) in (0..).zip(&found) {
            assert!(items.get(number(item)).unwrap() == *found, "seed {seed}: item {item}");
        }
        assert_eq!(items.get("first").unwrap().unwrap(), [1; 20_000]);
        assert_eq!(db.verify().unwrap().problems, [] as [&str; 0], "seed {seed}");
    }
}
