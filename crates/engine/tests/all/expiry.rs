//! Expiry: an item is gone once its time has come, for reads at once and from the disk with the next merge.

use std::sync::Arc;
use std::time::Duration;

use alluvium::{Db, Durability, Environment, Metadata, Update};
use alluvium_io::{Clock, SimulatedClock, SimulatedStorage};

fn open(storage: &SimulatedStorage, clock: &SimulatedClock) -> Db {
    let mut environment = Environment::over(Arc::new(storage.clone()));
    environment.clock = Arc::new(clock.clone());
    Db::builder("simulated")
        .durability(Durability::Buffered)
        .background(false)
        .environment(environment)
        .open()
        .unwrap()
}

fn expiring(clock: &SimulatedClock, after_ms: u64) -> Metadata {
    Metadata { flags: 7, expires_at_ms: Some(clock.unix().as_millis() as u64 + after_ms) }
}

#[test]
fn an_item_is_absent_from_its_expiry_on_wherever_it_lies() {
    let (storage, clock) = (SimulatedStorage::new(1), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    let settle_into = |place: &str| match place {
        "log" => Ok(()),
        "run" => db.flush(),
        _ => db.compact(),
    };
    for place in ["log", "run", "sorted run"] {
        items.insert("stays", place).unwrap();
        items.insert("goes", "before").unwrap();
        let metadata = expiring(&clock, 1_000);
        items.insert_with("goes", "value", metadata).unwrap();
        settle_into(place).unwrap();
        assert_eq!(items.get_with_metadata("goes").unwrap(), Some((b"value".to_vec(), metadata)), "{place}");
        let mut iter = items.iter();
        let mut found =
            vec![iter.next_with_metadata().unwrap().unwrap(), iter.next_with_metadata().unwrap().unwrap()];
        found.sort_by(|left, right| left.0.cmp(&right.0));
        let plain = ((b"stays".to_vec(), place.into()), Metadata::default());
        assert_eq!(found, [((b"goes".to_vec(), b"value".to_vec()), metadata), plain], "{place}");
        assert!(iter.next_with_metadata().is_none(), "{place}");
        clock.advance(Duration::from_millis(999));
        assert!(items.contains_key("goes").unwrap(), "{place}");
        let snapshot = db.snapshot().unwrap();
        clock.advance(Duration::from_millis(1));
        assert_eq!(items.get("goes").unwrap(), None, "{place}");
        assert_eq!(items.multi_get(&["goes", "stays"]).unwrap(), [None, Some(place.into())], "{place}");
        assert_eq!(items.iter().count(), 1, "{place}");
        assert_eq!(
            items
                .update("goes", |value| {
                    assert_eq!(value, None);
                    Update::Keep
                })
                .unwrap(),
            None
        );
        // A snapshot shows one moment, so its reads repeat.
        let before = snapshot.keyspace("items").unwrap();
        assert_eq!(before.get("goes").unwrap().as_deref(), Some(&b"value"[..]), "{place}");
        assert_eq!(before.iter().count(), 2, "{place}");
        db.compact().unwrap();
        assert_eq!((items.get("goes").unwrap(), items.iter().count()), (None, 1), "{place}");
    }
}

#[test]
fn what_has_expired_stays_gone_when_the_clock_goes_back() {
    let (storage, clock) = (SimulatedStorage::new(2), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    items.insert_with("key", "value", expiring(&clock, 1_000)).unwrap();
    items.insert_with("forever", "value", Metadata { flags: 0, expires_at_ms: Some(u64::MAX) }).unwrap();
    clock.advance(Duration::from_secs(2));
    assert_eq!(items.get("key").unwrap(), None);
    clock.set_unix(Duration::from_secs(1));
    assert_eq!(items.get("key").unwrap(), None);
    assert!(items.contains_key("forever").unwrap());
}

#[test]
fn a_merge_gives_the_space_of_expired_items_back() {
    let (storage, clock) = (SimulatedStorage::new(3), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    for number in 0..10_000u32 {
        let metadata = if number % 2 == 0 { expiring(&clock, 1_000) } else { Metadata::default() };
        items.insert_with(number.to_le_bytes(), [1; 60], metadata).unwrap();
    }
    db.compact().unwrap();
    let before = db.stats().levels.iter().map(|level| level.items).sum::<u64>();
    clock.advance(Duration::from_secs(1));
    db.compact().unwrap();
    let after = db.stats().levels.iter().map(|level| level.items).sum::<u64>();
    assert_eq!((before, after), (10_000, 5_000));
}

fn items_in_tables(db: &Db) -> u64 {
    db.stats().levels.iter().map(|level| level.items).sum()
}

#[test]
fn what_has_expired_goes_without_being_asked_and_only_once_it_is_much() {
    let (storage, clock) = (SimulatedStorage::new(4), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    // One in ten soon, and half of the rest later.
    let metadata = |number: u32| match number % 20 {
        0 | 1 => expiring(&clock, 1_000),
        2..11 => expiring(&clock, 2_000),
        _ => Metadata::default(),
    };
    for number in 0..40_000u32 {
        items.insert_with(number.to_le_bytes(), [1; 100], metadata(number)).unwrap();
    }
    db.compact().unwrap();
    let rewritten = || db.stats().traffic.sorted_bytes_written;
    let before = rewritten();
    clock.advance(Duration::from_secs(1));
    db.wait_idle().unwrap();
    assert_eq!(
        (rewritten(), items_in_tables(&db)),
        (before, 40_000),
        "a tenth is not worth rewriting the rest"
    );
    clock.advance(Duration::from_secs(1));
    assert!((17_000..=22_000).contains(&db.stats().garbage.expired), "{:?}", db.stats().garbage);
    db.wait_idle().unwrap();
    assert_eq!((items_in_tables(&db), db.stats().garbage.expired), (18_000, 0));
    let after = rewritten();
    db.wait_idle().unwrap();
    db.compact().unwrap();
    assert_eq!(rewritten(), after, "nothing is left to rewrite");
    assert_eq!(items.iter().count(), 18_000);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn what_was_removed_goes_without_being_asked() {
    let (storage, clock) = (SimulatedStorage::new(5), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    for number in 0..40_000u32 {
        items.insert(number.to_le_bytes(), [1; 100]).unwrap();
    }
    db.compact().unwrap();
    for number in 0..20_000u32 {
        items.remove(number.to_le_bytes()).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert_eq!(db.stats().garbage.tombstones, 0);
    assert_eq!(items_in_tables(&db), 20_000);
    assert_eq!(items.iter().count(), 20_000);
}

#[test]
fn a_snapshot_keeps_expired_items_and_their_space_until_it_goes() {
    let (storage, clock) = (SimulatedStorage::new(6), SimulatedClock::default());
    let db = open(&storage, &clock);
    let items = db.keyspace("items").unwrap();
    for number in 0..20_000u32 {
        items.insert_with(number.to_le_bytes(), [1; 100], expiring(&clock, 1_000)).unwrap();
    }
    db.compact().unwrap();
    // The reserve for a full disk exists whatever is stored.
    let is_counted = |name: &String| name != "RESERVE";
    let bytes = || {
        let contents = storage.contents();
        contents.iter().filter(|(name, _)| is_counted(name)).map(|(_, bytes)| bytes.len()).sum::<usize>()
    };
    let full = bytes();
    let snapshot = db.snapshot().unwrap();
    assert_eq!(db.stats().snapshots, alluvium::SnapshotStats { snapshots: 1, ..Default::default() });
    clock.advance(Duration::from_secs(1));
    db.wait_idle().unwrap();
    let held = db.stats().snapshots;
    assert!(held.disk > 2_000_000 && held.memory > 0, "{held:?}");
    assert_eq!(db.stats().memory.snapshots, held.log_memory);
    assert_eq!(items.iter().count(), 0);
    assert_eq!(snapshot.keyspace("items").unwrap().iter().count(), 20_000);
    drop(snapshot);
    assert_eq!(db.stats().snapshots, alluvium::SnapshotStats::default());
    assert!(bytes() < full / 4, "{} of {full} bytes are left", bytes());
}
