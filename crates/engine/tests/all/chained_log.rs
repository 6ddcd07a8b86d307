//! The log of keyspaces whose log is the store, for its readers: it stays when the chains in it are gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{ChainedSpec, Db, Environment, KeyspaceOptions, LogChange, LogPosition, Plan};
use alluvium_io::SimulatedStorage;

const KEYS: u32 = 500;

/// The newest value of each key of each keyspace.
type Values = BTreeMap<(String, Vec<u8>), Vec<u8>>;

fn open(storage: &SimulatedStorage, retention_bytes: u64) -> Db {
    let environment = Environment { random_seed: 7, ..Environment::over(Arc::new(storage.clone())) };
    let builder = Db::builder("simulated").environment(environment).background(false);
    builder.garbage_bytes_min(8 << 10).log_retention_bytes(retention_bytes).open().unwrap()
}

/// Writes all keys of the two keyspaces, each several times, and collects what is garbage then.
fn write(db: &Db, rounds: u8) {
    let plans = [Plan::silt(), Plan::Chained(ChainedSpec::of_length(3.0))];
    let keyspaces = ["levels", "chains"].into_iter().zip(plans).map(|(name, plan)| {
        let options = KeyspaceOptions::default().with_plan(plan);
        db.keyspace_with(name, &options).unwrap()
    });
    let keyspaces: Vec<_> = keyspaces.collect();
    for round in 0..rounds {
        for number in 0..KEYS {
            // Segments of the chains alone, of levels alone, and of both.
            let keyspace = &keyspaces[usize::from(round % 3 != 1)];
            keyspace.insert(number.to_le_bytes(), [round; 100]).unwrap();
            if round % 3 == 2 {
                keyspaces[0].insert(number.to_le_bytes(), [round; 100]).unwrap();
            }
        }
        db.flush().unwrap();
    }
    while db.run_background_job().unwrap() {}
}

/// What the log says from `position` on, by how many puts, and where it ends.
fn follow(db: &Db, position: LogPosition) -> (Values, u64, LogPosition) {
    let (mut items, mut puts) = (Values::new(), 0);
    let mut records = db.log_records(position).unwrap();
    for record in records.by_ref() {
        for change in record.unwrap().changes {
            let LogChange::Put { keyspace, key, value, .. } = change else { panic!("{change:?}") };
            items.insert((keyspace, key), value);
            puts += 1;
        }
    }
    let end = records.position();
    (items, puts, end)
}

#[test]
fn the_log_outlives_its_chains() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage, 64 << 20);
    let start = db.log_position();
    write(&db, 12);
    assert!(db.stats().chains.segments_collected > 1, "{:?}", db.stats().chains);
    let (items, puts, end) = follow(&db, start);
    assert_eq!((items.len(), puts), (2 * KEYS as usize, 16 * u64::from(KEYS)));
    db.close().unwrap();

    // Every segment is found again, whether chains need it or not.
    let db = open(&storage, 64 << 20);
    assert_eq!(follow(&db, start), (items, puts, db.log_position()));
    write(&db, 3);
    let (_, puts, _) = follow(&db, end);
    assert_eq!(puts, 4 * u64::from(KEYS));
    db.close().unwrap();

    // Without retention nothing but the chains keeps files.
    let db = open(&storage, 0);
    write(&db, 12);
    assert!(db.log_records(start).is_err() && db.log_records(end).is_err());
    db.close().unwrap();
    let files = storage.contents().into_keys().filter(|name| name.starts_with("log-")).count();
    let db = open(&storage, 0);
    let in_use = db.stats().chains.segments;
    // The active segment, those being converted, and spare ones.
    assert!(files <= in_use + 4, "{files} files, {in_use} in use");
    assert!(db.verify().unwrap().problems.is_empty());
}

/// The log begins behind a segment that is missing: a reader of what is older learns that it is gone.
#[test]
fn a_gap_ends_the_log() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage, 64 << 20);
    let start = db.log_position();
    write(&db, 12);
    db.close().unwrap();
    let mut contents = storage.contents();
    let mut names: Vec<String> = contents.keys().filter(|name| name.starts_with("log-")).cloned().collect();
    names.sort_by_key(|name| contents[name][16..24].to_vec());
    // Neither chains nor levels need it.
    contents.remove(&names[2]);
    let storage = SimulatedStorage::from_contents(1, &contents);
    let db = open(&storage, 64 << 20);
    let error = db.log_records(start).unwrap_err();
    let alluvium::Error::LogPositionGone { oldest } = error else { panic!("{error}") };
    assert!(follow(&db, oldest).1 > 0);
}
