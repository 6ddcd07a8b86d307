//! Numbers that are incremented and values that are appended to: no update is lost, whichever thread makes it and
//! wherever the item is stored.

use std::sync::Arc;
use std::time::Duration;

use alluvium::{Db, Durability, Environment, Error, Keyspace, Metadata, Update, VALUE_BYTES_MAX};
use alluvium_io::{Clock, SimulatedClock, SimulatedStorage};

/// Small segments and indexes, so that many increments find a full index.
fn open(path: &std::path::Path) -> (Db, Keyspace) {
    let db = Db::builder(path).plan(crate::damage::plan()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    (db, items)
}

#[test]
fn increments_of_many_threads_add_up() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path());
    let (threads, steps, keys) = (4u32, 3_000u32, 150u32);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let items = &items;
            scope.spawn(move || {
                let mut last = vec![0; keys as usize];
                for step in 0..steps {
                    let key = (step * 7 + thread) % keys;
                    let sum = items.increment(key.to_le_bytes(), 1).unwrap();
                    assert!(sum > last[key as usize], "the sums that a thread sees grow");
                    last[key as usize] = sum;
                }
            });
        }
        scope.spawn(|| (0..10).for_each(|_| db.flush().unwrap()));
    });
    let total: i64 = (0..keys).map(|key| items.increment(key.to_le_bytes(), 0).unwrap()).sum();
    assert_eq!(total, i64::from(threads * steps));
}

#[test]
fn appends_of_many_threads_are_all_there_and_whole() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, items) = open(directory.path());
    let (threads, steps) = (3u8, 400usize);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let items = &items;
            // Long enough that the value ends up in a blob file.
            scope.spawn(move || {
                (0..steps).for_each(|_| assert!(items.append("key", [thread; 5]).unwrap() > 0))
            });
        }
    });
    let value = items.get("key").unwrap().unwrap();
    assert_eq!(value.len(), usize::from(threads) * steps * 5);
    let mut counts = vec![0; threads.into()];
    for piece in value.chunks(5) {
        assert!(piece.iter().all(|byte| *byte == piece[0]));
        counts[usize::from(piece[0])] += 1;
    }
    assert_eq!(counts, vec![steps; threads.into()]);
}

#[test]
fn what_is_no_number_or_would_overflow_stays_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, items) = open(directory.path());
    items.insert("text", "17").unwrap();
    assert!(matches!(items.increment("text", 1), Err(Error::NotANumber { len: 2 })));
    items.insert("most", i64::MAX.to_le_bytes()).unwrap();
    assert!(matches!(items.increment("most", 1), Err(Error::NumberOverflow { value: i64::MAX, by: 1 })));
    assert_eq!(items.increment("most", -1).unwrap(), i64::MAX - 1);
    assert_eq!(items.increment("least", i64::MIN).unwrap(), i64::MIN);
    assert!(matches!(items.increment("least", -1), Err(Error::NumberOverflow { .. })));
    assert_eq!(items.get("text").unwrap().as_deref(), Some(&b"17"[..]));
    items.insert("long", vec![1; VALUE_BYTES_MAX]).unwrap();
    assert!(matches!(items.append("long", "x"), Err(Error::ValueTooLarge { .. })));
    assert_eq!(items.append("long", "").unwrap(), VALUE_BYTES_MAX);
}

#[test]
fn flags_and_expiry_stay_and_what_has_expired_starts_anew() {
    let (storage, clock) = (SimulatedStorage::new(1), SimulatedClock::default());
    let mut environment = Environment::over(Arc::new(storage));
    environment.clock = Arc::new(clock.clone());
    let db = Db::builder("simulated").background(false).environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let expires_at_ms = Some(clock.unix().as_millis() as u64 + 1_000);
    let metadata = Metadata { flags: 9, expires_at_ms };
    items.insert_with("number", 5_i64.to_le_bytes(), metadata).unwrap();
    items.insert_with("bytes", "ab", metadata).unwrap();
    let snapshot = db.snapshot().unwrap();
    assert_eq!(items.increment("number", 2).unwrap(), 7);
    assert_eq!(items.append("bytes", "c").unwrap(), 3);
    let number = 7_i64.to_le_bytes().to_vec();
    assert_eq!(items.get_with_metadata("number").unwrap(), Some((number, metadata)));
    assert_eq!(items.get_with_metadata("bytes").unwrap(), Some((b"abc".to_vec(), metadata)));
    let flagged = items.update_with_metadata("bytes", |before| {
        let (value, metadata) = before.unwrap();
        Update::InsertWith(value.to_vec(), Metadata { flags: metadata.flags + 1, ..metadata })
    });
    assert_eq!(flagged.unwrap(), Some((b"abc".to_vec(), metadata)));
    assert_eq!(items.get_with_metadata("bytes").unwrap().unwrap().1.flags, 10);
    let before = snapshot.keyspace("items").unwrap();
    assert_eq!(before.get("number").unwrap(), Some(5_i64.to_le_bytes().to_vec()));
    clock.advance(Duration::from_secs(1));
    assert_eq!(items.increment("number", 2).unwrap(), 2);
    assert_eq!(items.append("bytes", "c").unwrap(), 1);
    let (_, metadata) = items.get_with_metadata("bytes").unwrap().unwrap();
    assert_eq!(metadata, Metadata::default());
}

#[test]
fn a_change_that_was_refused_leaves_nothing_for_a_recovery() {
    let storage = SimulatedStorage::new(1);
    let environment = || {
        let environment = Environment::over(Arc::new(storage.reopen()));
        Environment { clock: Arc::new(SimulatedClock::default()), ..environment }
    };
    let open = || {
        let builder = Db::builder("simulated").plan(crate::damage::plan()).background(false);
        builder.environment(environment()).open().unwrap()
    };
    let db = open();
    let items = db.keyspace("items").unwrap();
    // Each key is updated once. If a change is requested again because an index was full, it declines.
    let mut kept = Vec::new();
    for number in 0..2_000u32 {
        let mut calls = 0;
        items
            .update(number.to_le_bytes(), |before| {
                assert_eq!(before, None);
                calls += 1;
                if calls == 1 { Update::Insert(vec![1]) } else { Update::Keep }
            })
            .unwrap();
        kept.extend((calls == 1).then_some(number));
    }
    storage.kill();
    drop((items, db));
    let items = open().keyspace("items").unwrap();
    for number in 0..2_000u32 {
        let is_there = items.contains_key(number.to_le_bytes()).unwrap();
        assert_eq!(is_there, kept.contains(&number), "{number}");
    }
}
