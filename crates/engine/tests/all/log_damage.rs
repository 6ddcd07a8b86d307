//! Damage to a log, or to a blob file, that was not closed: what was synced is not mistaken for a torn write.

use crate::damage::{Contents, Sample, Verdict, key};
use alluvium::{Db, Durability, Error, RepairOptions, repair_in};
use alluvium_io::SimulatedStorage;

const ITEMS: u32 = 300;

fn value(number: u32) -> Vec<u8> {
    format!("value {number} {}", "x".repeat(number as usize % 50)).into_bytes()
}

/// The files of a killed process that wrote items one by one, each of which was durable when acknowledged.
fn killed(sample: &Sample, is_marked: bool) -> Contents {
    let storage = SimulatedStorage::new(5);
    let db = Db::builder("killed")
        .background(false)
        .durability(Durability::Sync)
        .environment(sample.environment_over(storage.clone()))
        .open()
        .unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..ITEMS {
        items.insert(key(number), value(number)).unwrap();
    }
    if is_marked {
        db.wait_idle().unwrap();
    }
    let contents = storage.contents();
    storage.kill();
    contents
}

fn open(sample: &Sample, contents: &Contents, read_only: bool) -> (SimulatedStorage, Result<Db, Error>) {
    let storage = SimulatedStorage::from_contents(2, contents);
    let builder = Db::builder("killed").background(false).create(false).read_only(read_only);
    (storage.clone(), builder.environment(sample.environment_over(storage)).open())
}

fn log_of(contents: &Contents) -> (String, usize) {
    let (name, bytes) = contents.iter().find(|(name, _)| name.starts_with("log-")).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    (name.clone(), end)
}

fn count_present(db: &Db) -> u32 {
    let items = db.keyspace("items").unwrap();
    let is_present = |&number: &u32| match items.get(key(number)).unwrap() {
        Some(found) => found == value(number),
        None => false,
    };
    (0..ITEMS).filter(is_present).count() as u32
}

#[test]
fn damage_to_synced_records_refuses_writing_and_costs_one_record() {
    let sample = Sample::new();
    let contents = killed(&sample, true);
    let (name, end) = log_of(&contents);
    let places = (0..40).step_by(7).chain((4096..end).step_by(101));
    let mut refused = 0;
    for at in places {
        let what = format!("byte {at} of {end}");
        let mut damaged = contents.clone();
        damaged.get_mut(&name).unwrap()[at] ^= 0x10;
        let (storage, opened) = open(&sample, &damaged, false);
        let error = match opened {
            Ok(db) => {
                assert_eq!(count_present(&db), ITEMS, "{what}");
                continue;
            }
            Err(error) => error,
        };
        refused += 1;
        let Error::Damaged { corruption, directory } = &error else { panic!("{what}: {error}") };
        assert_eq!((&corruption.file, &**directory), (&name, "killed"), "{what}");
        assert!(corruption.offset <= at as u64, "{what}: {error}");
        assert!(error.to_string().contains("alluvium repair killed"), "{error}");
        let mut after = storage.contents();
        after.remove("LOCK");
        let mut before = damaged.clone();
        before.remove("LOCK");
        assert!(after == before, "{what}: the refusal changed something");

        let lost = u32::from(at >= 4096);
        let (_, opened) = open(&sample, &damaged, true);
        let db = opened.unwrap();
        assert!(!db.damage().is_empty(), "{what}");
        assert!(count_present(&db) >= ITEMS - lost, "{what}");
        assert!(!db.verify().unwrap().problems.is_empty(), "{what}");

        let storage = SimulatedStorage::from_contents(3, &damaged);
        let options = RepairOptions::default();
        let report = repair_in(sample.environment_over(storage.clone()), &options).unwrap();
        assert!(report.changed, "{what}");
        let (_, opened) = open(&sample, &storage.contents(), false);
        let db = opened.unwrap();
        assert!(db.damage().is_empty());
        let present = count_present(&db);
        assert!(present >= ITEMS - lost, "{what}: {present}");
        assert!(u64::from(ITEMS - present) <= report.log_gaps, "{what}: {report:?}");
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn only_the_last_synced_record_can_pass_for_torn_when_nothing_follows_it() {
    let sample = Sample::new();
    let contents = killed(&sample, false);
    let (name, end) = log_of(&contents);
    for at in (4096..end).rev().step_by(13) {
        let mut damaged = contents.clone();
        damaged.get_mut(&name).unwrap()[at] ^= 1;
        match open(&sample, &damaged, false).1 {
            Ok(db) => {
                let present = count_present(&db);
                let is_last = end - at <= 100;
                assert!(present == ITEMS || present == ITEMS - 1 && is_last, "byte {at} of {end}: {present}");
            }
            Err(error) => assert_eq!(Verdict::of(&error, "opening"), Verdict::Noticed),
        }
    }
}

#[test]
fn a_segment_that_is_missing_in_front_of_another_is_noticed() {
    let sample = Sample::new();
    let storage = SimulatedStorage::new(5);
    let environment = sample.environment_over(storage.clone());
    let builder = Db::builder("killed").plan(sample.plan.clone()).background(false);
    let db = builder.environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let mut number = 0;
    while db.stats().frozen_segments == 0 {
        items.insert(key(number), value(number)).unwrap();
        number += 1;
    }
    for more in number..number + 5 {
        items.insert(key(more), value(more)).unwrap();
    }
    let contents = storage.contents();
    storage.kill();
    assert!(open(&sample, &contents, false).1.is_ok());
    let holds_records = |bytes: &[u8]| bytes.iter().skip(4096).any(|&byte| byte != 0);
    let logs = contents.iter().filter(|(name, bytes)| name.starts_with("log-") && holds_records(bytes));
    let first = logs.min_by_key(|(_, bytes)| bytes[16..24].to_vec()).unwrap().0;
    for damage in [0usize, 1, 2] {
        let mut damaged = contents.clone();
        match damage {
            0 => drop(damaged.remove(first)),
            1 => damaged.get_mut(first).unwrap()[20] ^= 4,
            _ => damaged.get_mut(first).unwrap().truncate(5_000),
        }
        let error = open(&sample, &damaged, false).1.unwrap_err();
        assert!(matches!(&error, Error::Damaged { .. }), "{damage}: {error}");
        let db = open(&sample, &damaged, true).1.unwrap();
        assert!(!db.damage().is_empty());
        let items = db.keyspace("items").unwrap();
        assert_eq!(items.get(key(number + 4)).unwrap(), Some(value(number + 4)));
        assert_eq!(items.get(key(0)).unwrap().is_some(), damage != 0, "{damage}");
    }
}
