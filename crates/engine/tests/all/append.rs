//! Values that are appended to: bytes written grow with bytes appended, and the value is complete wherever it is
//! stored.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Keyspace, Metadata, VALUE_BYTES_MAX};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Blob files of 60 kB, collected at 10 kB of garbage.
fn open(path: &Path) -> Db {
    let builder =
        Db::builder(path).plan(crate::damage::plan()).durability(Durability::Buffered).background(false);
    builder.blob_sizes(60_000, 16 << 10, 10_000).open().unwrap()
}

fn bytes_written(db: &Db) -> u64 {
    let traffic = db.stats().traffic;
    traffic.log_bytes_written
        + traffic.blob_bytes_written
        + traffic.hash_bytes_written
        + traffic.sorted_bytes_written
}

fn streamed(keyspace: &Keyspace, key: &[u8]) -> Option<Vec<u8>> {
    let mut reader = keyspace.get_reader(key).unwrap()?;
    let mut value = Vec::new();
    reader.read_to_end(&mut value).unwrap();
    assert_eq!(reader.len(), value.len() as u64);
    Some(value)
}

#[test]
fn what_is_written_grows_with_what_is_appended() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let mut factors = Vec::new();
    for appends in [1_000_u32, 8_000] {
        let key = appends.to_le_bytes();
        let before = bytes_written(&db);
        let mut value = Vec::new();
        for number in 0..appends {
            let piece = number.to_le_bytes().repeat(25);
            value.extend_from_slice(&piece);
            assert_eq!(items.append(key, &piece).unwrap(), value.len());
        }
        db.persist().unwrap();
        assert_eq!(items.get(key).unwrap(), Some(value.clone()));
        factors.push((bytes_written(&db) - before) as f64 / value.len() as f64);
    }
    // A value eight times as long is written about three times more often, not eight times.
    assert!(factors[1] < 25.0 && factors[1] < factors[0] + 10.0, "{factors:?}");
}

#[test]
fn a_value_grows_to_its_limit_and_not_beyond() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let piece = vec![7; (4 << 20) - 1];
    let mut len = 0;
    while len + piece.len() <= VALUE_BYTES_MAX {
        len += piece.len();
        assert_eq!(items.append("key", &piece).unwrap(), len);
    }
    assert!(items.append("key", &piece).is_err());
    let rest = vec![8; VALUE_BYTES_MAX - len];
    assert_eq!(items.append("key", &rest).unwrap(), VALUE_BYTES_MAX);
    assert!(items.append("key", "x").is_err());
    assert_eq!(items.append("key", "").unwrap(), VALUE_BYTES_MAX);
    let value = items.get("key").unwrap().unwrap();
    assert!(
        value.len() == VALUE_BYTES_MAX && value[len - 1] == 7 && value[len..].iter().all(|byte| *byte == 8)
    );
}

#[test]
fn appends_beside_collection_come_to_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(crate::damage::plan()).durability(Durability::Buffered);
    let db = builder.blob_sizes(60_000, 16 << 10, 10_000).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let piece: Vec<u8> = (0..7_000_u32).map(|at| at as u8).collect();
    let appends = 600;
    for number in 1..=appends {
        assert_eq!(items.append("key", &piece).unwrap(), number * piece.len());
    }
    assert!(items.get("key").unwrap() == Some(piece.repeat(appends)));
    let traffic = db.stats().traffic;
    // Joins write about seven times what is appended. Garbage collection adds about the same.
    let factor = traffic.blob_bytes_written as f64 / (appends * piece.len()) as f64;
    assert!(factor < 100.0, "{factor}: {traffic:?}");
    db.wait_idle().unwrap();
    assert!(items.get("key").unwrap() == Some(piece.repeat(appends)));
}

/// The appended values, by keys of all lengths.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, u32)>;

fn key(rng: &mut StdRng) -> Vec<u8> {
    let number = rng.random_range(0..24_u32);
    let len = [4, 40, 1_024, 1_025, 3_000][number as usize % 5];
    number.to_le_bytes().iter().copied().cycle().take(len).collect()
}

fn check(db: &Db, items: &Keyspace, model: &Model) {
    let keys: Vec<&Vec<u8>> = model.keys().collect();
    let mut each = BTreeMap::new();
    items
        .get_each(&keys, 8, |key, value| drop(each.insert(key.to_vec(), value.map(<[u8]>::to_vec))))
        .unwrap();
    let found =
        items.multi_get(&keys).unwrap().into_iter().zip(items.multi_get_with_metadata(&keys).unwrap());
    for ((key, (value, flags)), (found, with_metadata)) in model.iter().zip(found) {
        assert_eq!(found.as_ref(), Some(value));
        let metadata = Metadata { flags: *flags, expires_at_ms: None };
        assert_eq!(with_metadata, Some((value.clone(), metadata)));
        assert_eq!(items.get_with_metadata(key).unwrap(), Some((value.clone(), metadata)));
        assert_eq!(streamed(items, key).as_ref(), Some(value));
        assert_eq!(each[key].as_ref(), Some(value));
        assert!(items.contains_key(key).unwrap());
    }
    let expected: BTreeMap<_, _> =
        model.iter().map(|(key, (value, _))| (key.clone(), value.clone())).collect();
    let iterated: BTreeMap<_, _> = items.iter().map(Result::unwrap).collect();
    assert_eq!(iterated, expected);
    let snapshot = db.snapshot().unwrap();
    let of_snapshot: BTreeMap<_, _> =
        snapshot.keyspace("items").unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(of_snapshot, expected);
    assert_eq!(items.count().unwrap(), model.len() as u64);
}

/// Appends, and all other operations that change items.
fn change(rng: &mut StdRng, items: &Keyspace, model: &mut Model) {
    let key = key(rng);
    match rng.random_range(0..20) {
        0 => {
            items.remove(&key).unwrap();
            model.remove(&key);
        }
        1 => {
            let (flags, value) = (rng.random_range(0..3), vec![rng.random(); rng.random_range(0..5_000)]);
            items.insert_with(&key, &value, Metadata { flags, expires_at_ms: None }).unwrap();
            model.insert(key, (value, flags));
        }
        _ => {
            let len = match rng.random_range(0..10) {
                0 => 0,
                1..=7 => rng.random_range(1..200),
                8 => rng.random_range(200..3_000),
                _ => rng.random_range(3_000..30_000),
            };
            let bytes: Vec<u8> = (0..len).map(|_| rng.random()).collect();
            let flags = model.get(&key).map_or(0, |(_, flags)| *flags);
            let refuses = |metadata: Metadata| metadata.flags != flags;
            assert_eq!(items.append_if(&key, &bytes, refuses).unwrap(), None);
            let (value, _) = model.entry(key.clone()).or_default();
            value.extend_from_slice(&bytes);
            assert_eq!(items.append(&key, &bytes).unwrap(), value.len());
        }
    }
}

#[test]
fn appends_agree_with_a_map_through_merges_collection_and_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = StdRng::seed_from_u64(16);
    let mut model = Model::new();
    let (mut emptied, mut relocated) = (0, 0);
    for round in 0..4 {
        let db = open(directory.path());
        let items = db.keyspace("items").unwrap();
        check(&db, &items, &model);
        for step in 0..40 {
            let held = (step % 9 == 4).then(|| (db.snapshot().unwrap(), model.clone()));
            (0..40).for_each(|_| change(&mut rng, &items, &mut model));
            match step % 10 {
                3 => db.flush().unwrap(),
                6 => db.wait_idle().unwrap(),
                9 => db.compact().unwrap(),
                _ => {}
            }
            if let Some((snapshot, before)) = held {
                let found: BTreeMap<_, _> =
                    snapshot.keyspace("items").unwrap().iter().map(Result::unwrap).collect();
                let before: BTreeMap<_, _> =
                    before.into_iter().map(|(key, (value, _))| (key, value)).collect();
                assert_eq!(found, before);
            }
            if step % 5 == 0 {
                check(&db, &items, &model);
            }
        }
        let report = db.verify().unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        let traffic = db.stats().traffic;
        (emptied, relocated) =
            (emptied + traffic.blob_files_emptied, relocated + traffic.blob_bytes_relocated);
        let copy = directory.path().join(format!("copy{round}"));
        db.checkpoint(&copy).unwrap();
        let copied = Db::builder(&copy).plan(crate::damage::plan()).background(false).open().unwrap();
        check(&copied, &copied.keyspace("items").unwrap(), &model);
        drop(items);
        db.close().unwrap();
    }
    assert!(emptied > 0 && relocated > 0, "{emptied} {relocated}: nothing was collected");
}

#[test]
fn appended_bytes_that_were_synced_survive_power_cuts() {
    for seed in 0..8 {
        let storage = SimulatedStorage::new(seed);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut model = Model::new();
        for _ in 0..4 {
            let environment = Environment::over(Arc::new(storage.reopen()));
            let environment = Environment { clock: Arc::new(SimulatedClock::default()), ..environment };
            let builder = Db::builder("simulated").plan(crate::damage::plan()).background(false);
            let builder = builder.durability(Durability::Sync).environment(environment);
            let db = builder.blob_sizes(60_000, 16 << 10, 10_000).open().unwrap();
            let items = db.keyspace("items").unwrap();
            check(&db, &items, &model);
            for step in 0..120 {
                change(&mut rng, &items, &mut model);
                if step % 40 == 20 {
                    db.wait_idle().unwrap();
                }
            }
            storage.crash();
            drop((items, db));
        }
    }
}
