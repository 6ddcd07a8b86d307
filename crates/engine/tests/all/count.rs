//! Exact counts: each key once, wherever its versions are stored, at one moment, and never an outdated answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alluvium::{Db, Durability, Environment, Keyspace, KeyspaceOptions, Metadata, PrefixRule};
use alluvium_io::{Clock, SimulatedClock, SimulatedStorage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn open(path: &std::path::Path) -> Db {
    Db::builder(path)
        .plan(crate::damage::plan())
        .durability(Durability::Buffered)
        .background(false)
        .open()
        .unwrap()
}

fn keyspaces(db: &Db) -> [Keyspace; 2] {
    let rule = PrefixRule::Length { bytes: 1 };
    [
        db.keyspace("hashed").unwrap(),
        db.keyspace_with("semi-sorted", &KeyspaceOptions::semi_sorted(rule)).unwrap(),
    ]
}

#[test]
fn an_empty_keyspace_has_no_items_whatever_was_removed() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    for items in keyspaces(&db) {
        assert_eq!(items.count().unwrap(), 0);
        for number in 0..1_000_u32 {
            items.remove(number.to_be_bytes()).unwrap();
        }
        assert_eq!(items.count().unwrap(), 0);
        db.flush().unwrap();
        assert_eq!(items.count().unwrap(), 0);
        items.insert("key", "a").unwrap();
        items.insert("key", "b").unwrap();
        assert_eq!(items.count().unwrap(), 1);
        items.clear().unwrap();
        assert_eq!(items.count().unwrap(), 0);
    }
}

#[test]
fn counts_agree_with_a_set_through_log_runs_and_tables() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = StdRng::seed_from_u64(45);
    let mut models = [BTreeSet::new(), BTreeSet::new()];
    for _ in 0..3 {
        let db = open(directory.path());
        let keyspaces = keyspaces(&db);
        for step in 0..60 {
            for (items, model) in keyspaces.iter().zip(&mut models) {
                for _ in 0..rng.random_range(1..200) {
                    let key = rng.random_range(0..5_000_u32).to_be_bytes();
                    let key = [&[key[3] % 16], &key[..]].concat();
                    if rng.random_range(0..3) == 0 {
                        items.remove(&key).unwrap();
                        model.remove(&key);
                    } else {
                        let len = if rng.random_range(0..40) == 0 { 3_000 } else { 20 };
                        items.insert(&key, vec![1; len]).unwrap();
                        model.insert(key);
                    }
                }
            }
            match step % 20 {
                5 => db.flush().unwrap(),
                11 => db.wait_idle().unwrap(),
                17 => db.compact().unwrap(),
                _ => {}
            }
            for (items, model) in keyspaces.iter().zip(&models) {
                // Twice: first counted, then known.
                assert_eq!(items.count().unwrap(), model.len() as u64, "step {step}");
                assert_eq!(items.count().unwrap(), model.len() as u64, "step {step}");
                assert_eq!(items.count_within(u64::MAX).unwrap(), Some(model.len() as u64));
            }
        }
        for (items, model) in keyspaces.iter().zip(&mut models) {
            let mut batch = db.batch();
            batch.insert(items, [0, 1], "new");
            batch.commit().unwrap();
            model.insert(vec![0, 1]);
            assert_eq!(items.count().unwrap(), model.len() as u64);
            let mut ingest = items.ingest().unwrap();
            for number in 0..50_u8 {
                ingest.insert([1, number], "ingested").unwrap();
                model.insert(vec![1, number]);
            }
            ingest.finish().unwrap();
            assert_eq!(items.count().unwrap(), model.len() as u64);
        }
        keyspaces[1].delete_prefix([1]).unwrap();
        models[1].retain(|key| key[0] != 1);
        assert_eq!(keyspaces[1].count().unwrap(), models[1].len() as u64);
        drop(keyspaces);
        db.close().unwrap();
    }
}

#[test]
fn what_has_expired_no_longer_counts() {
    let (storage, clock) = (SimulatedStorage::new(1), SimulatedClock::default());
    let mut environment = Environment::over(Arc::new(storage));
    environment.clock = Arc::new(clock.clone());
    let db = Db::builder("simulated").background(false).environment(environment).open().unwrap();
    for items in keyspaces(&db) {
        let expires_at_ms = |after: u64| Some(clock.unix().as_millis() as u64 + after);
        for after in [1_000, 2_000, 3_000] {
            let metadata = Metadata { flags: 0, expires_at_ms: expires_at_ms(after) };
            items.insert_with(format!("{after}"), "value", metadata).unwrap();
        }
        items.insert("stays", "value").unwrap();
        for left in [4, 3, 2, 1] {
            assert_eq!(items.count().unwrap(), left);
            assert_eq!(items.count().unwrap(), left);
            clock.advance(Duration::from_secs(1));
        }
    }
}

#[test]
fn a_count_may_be_ended_or_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    for items in keyspaces(&db) {
        for number in 0..20_000_u32 {
            items.insert(number.to_be_bytes(), "value").unwrap();
        }
        assert_eq!(items.count_within(19_999).unwrap(), None);
        let mut questions = 0;
        let ended = items.count_while(|| {
            questions += 1;
            questions < 2
        });
        assert_eq!((ended.unwrap(), questions), (None, 2));
        assert_eq!(items.count_while(|| true).unwrap(), Some(20_000));
        // Known now.
        assert_eq!(items.count_within(0).unwrap(), Some(20_000));
        items.insert("another", "value").unwrap();
        assert_eq!(items.count_within(0).unwrap(), None);
    }
}

#[test]
fn a_count_is_of_one_moment() {
    const KEYS: u32 = 3_000;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).plan(crate::damage::plan()).durability(Durability::Buffered);
    let db = db.open().unwrap();
    for items in keyspaces(&db) {
        for number in 0..KEYS {
            items.insert(number.to_be_bytes(), "value").unwrap();
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // One key is added as another is removed, so their number stays the same.
            scope.spawn(|| {
                let mut rng = StdRng::seed_from_u64(7);
                let mut present: Vec<u32> = (0..KEYS).collect();
                let mut next = KEYS;
                while !is_over.load(Ordering::Relaxed) {
                    let place = rng.random_range(0..present.len());
                    let mut batch = db.batch();
                    batch.remove(&items, present[place].to_be_bytes());
                    batch.insert(&items, next.to_be_bytes(), "value");
                    batch.commit().unwrap();
                    present[place] = next;
                    next += 1;
                }
            });
            for _ in 0..30 {
                let counted = items.count();
                if !matches!(counted, Ok(count) if count == u64::from(KEYS)) {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{counted:?} in {}", items.name());
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}
