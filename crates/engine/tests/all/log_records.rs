//! The log is read from a position on: a copy that follows it agrees with the database, over merges and openings.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::{
    Db, Durability, Environment, Error, HashKey, KeyspaceOptions, LevelsPlan, LogChange, LogPosition,
    LogRecords, Metadata, Plan, PrefixRule, Snapshot,
};
use alluvium_io::{FaultPlan, SimulatedClock, SimulatedStorage};

/// Snapshots that are taken while another thread writes.
const SNAPSHOTS: usize = 2_000;

fn plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 2_000;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn open(path: &Path, retention_bytes: u64) -> Db {
    let builder = Db::builder(path).plan(plan()).durability(Durability::Buffered);
    builder.blob_sizes(1 << 20, 16 << 10, 8 << 10).log_retention_bytes(retention_bytes).open().unwrap()
}

/// A copy of a database that follows its log.
#[derive(Default)]
struct Copy {
    items: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
    /// Positions of the snapshots from which keyspaces were copied.
    copied: BTreeMap<String, LogPosition>,
    position: LogPosition,
}

impl Copy {
    /// Applies everything that the log has by now.
    fn follow(&mut self, db: &Db) {
        let mut records = db.log_records(self.position).unwrap();
        while let Some(record) = records.next() {
            let record = record.unwrap();
            assert!(record.next > self.position && record.next == records.position());
            for change in record.changes {
                self.apply(db, record.next, change);
            }
            self.position = record.next;
        }
        self.position = records.position();
    }

    fn apply(&mut self, db: &Db, at: LogPosition, change: LogChange) {
        let is_copied = |keyspace: &String| self.copied.get(keyspace).is_some_and(|position| at <= *position);
        match change {
            LogChange::Put { keyspace, key, value, .. } if !is_copied(&keyspace) => {
                self.items.entry(keyspace).or_default().insert(key, value);
            }
            LogChange::Remove { keyspace, key } if !is_copied(&keyspace) => {
                self.items.entry(keyspace).or_default().remove(&key);
            }
            LogChange::RemoveLong { keyspace, .. } | LogChange::Unlogged { keyspace }
                if !is_copied(&keyspace) =>
            {
                let snapshot = db.snapshot().unwrap();
                let found = snapshot.keyspace(&keyspace).unwrap();
                let items = found.iter().map(Result::unwrap).collect();
                self.items.insert(keyspace.clone(), items);
                self.copied.insert(keyspace, found.log_position());
            }
            _ => {}
        }
    }

    fn check(&self, db: &Db) {
        for name in db.keyspace_names() {
            let items: BTreeMap<_, _> = db.keyspace(&name).unwrap().iter().map(Result::unwrap).collect();
            let copied = self.items.get(&name).cloned().unwrap_or_default();
            let short = |value: Option<&Vec<u8>>| value.map(|value| (value.len(), value.first().copied()));
            for key in items.keys().chain(copied.keys()) {
                let (expected, found) = (items.get(key), copied.get(key));
                assert!(expected == found, "{name} {key:?}: {:?}, not {:?}", short(found), short(expected));
            }
        }
    }
}

fn number(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

fn ingest(db: &Db, items: std::ops::Range<u64>) {
    let mut ingest = db.keyspace("others").unwrap().ingest().unwrap();
    items.for_each(|item| ingest.insert(number(item), [9; 30]).unwrap());
    ingest.finish().unwrap();
}

#[test]
fn a_copy_follows_the_database_over_merges_and_openings() {
    let directory = tempfile::tempdir().unwrap();
    let mut copy = Copy::default();
    let mut state = 1_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for opening in 0..6 {
        let db = open(directory.path(), 64 << 20);
        let (items, others) = (db.keyspace("items").unwrap(), db.keyspace("others").unwrap());
        if opening == 0 {
            copy.position = db.log_position();
        }
        for round in 0..6 {
            for _ in 0..700 {
                let key = number(random(2_000));
                match random(12) {
                    0 => items.remove(key).unwrap(),
                    1 => others.insert(key, vec![random(255) as u8; 5_000]).unwrap(),
                    2 => {
                        let mut batch = db.batch();
                        batch.insert(&items, key, number(random(9)));
                        batch.remove(&others, key);
                        batch.commit().unwrap();
                    }
                    3 => drop(items.append(key, [7; 100]).unwrap()),
                    4 => items.insert(vec![3; 2_000 + random(3) as usize], b"long key").unwrap(),
                    _ => items.insert(key, vec![random(255) as u8; 60]).unwrap(),
                }
            }
            match (opening + round) % 5 {
                0 => items.clear().unwrap(),
                1 => ingest(&db, random(500)..1_000),
                2 => db.compact().unwrap(),
                3 => items.remove(vec![3; 2_001]).unwrap(),
                _ => copy.follow(&db),
            }
        }
        if opening % 2 == 0 {
            copy.follow(&db);
            copy.check(&db);
        }
        db.close().unwrap();
    }
}

/// Power cuts at any moment: what a follower has read is never taken back, and it continues where it was.
#[test]
fn a_copy_follows_over_power_cuts() {
    for seed in 0..40 {
        let mut storage = SimulatedStorage::new(seed);
        let (mut copy, mut crashes) = (Copy::default(), 0);
        while crashes < 6 {
            let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(storage.clone())) };
            let clock = Arc::new(SimulatedClock::default());
            let builder = Db::builder("log").plan(plan()).background(false).log_retention_bytes(64 << 20);
            let db = builder.environment(Environment { clock, ..environment }).open().unwrap();
            let (items, _others) = (db.keyspace("items").unwrap(), db.keyspace("others").unwrap());
            if crashes == 0 {
                copy.position = db.log_position();
            }
            copy.follow(&db);
            copy.check(&db);
            let crash_before_operation = Some(20 + (seed * 131 + crashes * 57) % 900);
            storage.set_faults(FaultPlan { crash_before_operation, ..FaultPlan::default() });
            let work = |round: u64| -> alluvium::Result<()> {
                for item in 0..300 {
                    items.insert(number(item * 7 % 500), vec![round as u8; 200])?;
                }
                match (round + seed) % 4 {
                    0 => items.clear()?,
                    1 => db.compact()?,
                    2 => {
                        let mut ingest = db.keyspace("others")?.ingest()?;
                        (0..1_000).try_for_each(|item| ingest.insert(number(item), [round as u8; 30]))?;
                        ingest.finish()?;
                    }
                    _ => while db.run_background_job()? {},
                }
                Ok(())
            };
            for round in 0.. {
                if work(crashes * 100 + round).is_err() {
                    break;
                }
                copy.follow(&db);
            }
            storage = storage.reopen();
            crashes += 1;
        }
    }
}

fn first_key(records: &mut LogRecords) -> Vec<u8> {
    match records.next().unwrap().unwrap().changes.remove(0) {
        LogChange::Put { key, .. } => key,
        other => panic!("{other:?}"),
    }
}

fn write(db: &Db, items: std::ops::Range<u64>) {
    let keyspace = db.keyspace("items").unwrap();
    items.for_each(|item| keyspace.insert(number(item), [1; 100]).unwrap());
}

#[test]
fn a_reader_holds_the_log_and_without_one_it_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), 0);
    db.keyspace("items").unwrap();
    let from = db.log_position();
    let mut records = db.log_records(from).unwrap();
    write(&db, 0..5_000);
    db.compact().unwrap();
    assert!(db.stats().log_retained_bytes > 500_000);
    let read: Vec<u64> =
        (0..5_000).map(|_| u64::from_le_bytes(first_key(&mut records).try_into().unwrap())).collect();
    assert!(read.into_iter().eq(0..5_000));
    assert!(records.next().is_none());
    write(&db, 5_000..5_001);
    assert_eq!(first_key(&mut records), number(5_000));
    drop(records);
    db.compact().unwrap();
    assert_eq!(db.stats().log_retained_bytes, 0);
    let error = db.log_records(from).unwrap_err();
    assert!(matches!(error, Error::LogPositionGone { oldest } if oldest > from), "{error}");
    assert_eq!(db.log_records(db.log_position()).unwrap().count(), 0);
}

#[test]
fn retained_log_is_bounded_and_survives_openings() {
    let directory = tempfile::tempdir().unwrap();
    let retention = 256 << 10;
    let db = open(directory.path(), retention);
    write(&db, 0..20_000);
    db.compact().unwrap();
    let bytes = db.stats().log_retained_bytes;
    assert!((retention..retention + (64 << 10)).contains(&bytes), "{bytes}");
    let (from, next) = (db.log_position(), 20_000);
    write(&db, next..next + 100);
    db.close().unwrap();
    let db = open(directory.path(), retention);
    let mut records = db.log_records(from).unwrap();
    for item in next..next + 100 {
        assert_eq!(first_key(&mut records), number(item));
    }
    write(&db, 7..8);
    assert_eq!(first_key(&mut records), number(7));
}

#[test]
fn a_record_is_shown_when_it_is_durable() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(plan());
    let db = builder.durability(Durability::Interval(std::time::Duration::from_secs(3_600))).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let mut records = db.log_records(db.log_position()).unwrap();
    items.insert("key", "value").unwrap();
    assert!(records.next().is_none());
    db.persist().unwrap();
    assert_eq!(first_key(&mut records), b"key");
}

/// An ingest after which the log has nothing but the record that announces it.
#[test]
fn a_power_cut_after_an_ingest_leaves_its_record() {
    for seed in 0..20 {
        let storage = SimulatedStorage::new(seed);
        let open = |storage: &SimulatedStorage| {
            let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(storage.clone())) };
            let builder = Db::builder("log").plan(plan()).background(false).log_retention_bytes(64 << 20);
            builder.environment(environment).open().unwrap()
        };
        let db = open(&storage);
        db.keyspace("others").unwrap();
        db.persist().unwrap();
        let from = db.log_position();
        ingest(&db, 0..100);
        storage.crash();
        drop(db);
        let db = open(&storage.reopen());
        assert_eq!(db.keyspace("others").unwrap().iter().count(), 100);
        let record = db.log_records(from).unwrap().next().expect("a record").unwrap();
        assert!(matches!(&record.changes[..], [LogChange::Unlogged { keyspace }] if keyspace == "others"));
    }
}

/// The first record behind a snapshot is that of the first write which the snapshot does not show.
#[test]
fn a_snapshot_and_its_position_are_of_one_moment() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), 0);
    let items = db.keyspace("items").unwrap();
    let is_over = AtomicBool::new(false);
    let latest = |snapshot: &Snapshot| {
        let found = snapshot.keyspace("items").unwrap().get("key").unwrap();
        found.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut next = (1..).take_while(|_| !is_over.load(Ordering::Relaxed));
            next.try_for_each(|value: u64| items.insert("key", value.to_le_bytes())).unwrap();
        });
        for _ in 0..SNAPSHOTS {
            let snapshot = db.snapshot().unwrap();
            let Ok(mut records) = db.log_records(snapshot.log_position()) else { continue };
            let Some(Ok(record)) = records.next() else { continue };
            let expected = latest(&snapshot) + 1;
            let is_next = match &record.changes[..] {
                [LogChange::Put { value, .. }] => *value == expected.to_le_bytes(),
                _ => false,
            };
            if !is_next {
                is_over.store(true, Ordering::Relaxed);
            }
            assert!(is_next, "{record:?}, not {expected}");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn changes_have_their_metadata_and_long_keys_their_digest() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path(), 0);
    let items = db.keyspace("items").unwrap();
    let mut records = db.log_records(db.log_position()).unwrap();
    let metadata = Metadata { flags: 7, expires_at_ms: Some(u64::MAX) };
    let key = vec![5; 3_000];
    items.insert_with(&key, "value", metadata).unwrap();
    items.remove(&key).unwrap();
    let put = LogChange::Put { keyspace: "items".to_owned(), key, value: b"value".to_vec(), metadata };
    assert_eq!(records.next().unwrap().unwrap().changes, [put]);
    let removed = records.next().unwrap().unwrap().changes;
    assert!(matches!(&removed[..], [LogChange::RemoveLong { .. }]), "{removed:?}");
    items.clear().unwrap();
    let cleared = records.next().unwrap().unwrap().changes;
    assert_eq!(cleared, [LogChange::Unlogged { keyspace: "items".to_owned() }]);
}

/// Version 2 of the log, written by an earlier release and not converted: it is replayed, and read.
#[test]
fn a_log_of_the_version_before_is_replayed() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/log-version-2");
    let directory = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(fixture).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), directory.path().join(file.file_name())).unwrap();
    }
    for _ in 0..2 {
        let db = Db::open(directory.path()).unwrap();
        let items = db.keyspace("default").unwrap();
        assert_eq!(items.get("first").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(items.get("second").unwrap(), None);
        assert!(db.verify().unwrap().problems.is_empty());
        items.insert("third", "value").unwrap();
        db.close().unwrap();
    }
}

#[test]
fn a_hash_key_is_shared_by_databases_and_kept() {
    let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [first, second] = [&one, &two].map(|directory| open(directory.path(), 0));
    let key = first.keyspace("items").unwrap().hash_key().unwrap();
    assert_eq!(HashKey::from_bytes(key.to_bytes()), key);
    let options = KeyspaceOptions::default().with_hash_key(key);
    let items = second.keyspace_with("items", &options).unwrap();
    assert_eq!(items.hash_key(), Some(key));
    assert_ne!(second.keyspace("own").unwrap().hash_key(), Some(key));
    let error = second.keyspace_with("own", &options).unwrap_err();
    assert!(matches!(error, Error::KeyspaceHashKey { .. }), "{error}");
    let sorted = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' }).with_hash_key(key);
    assert_eq!(second.keyspace_with("sorted", &sorted).unwrap().hash_key(), Some(key));
    write(&first, 0..100);
    write(&second, 0..100);
    let order =
        |db: &Db| db.keyspace("items").unwrap().iter().map(|item| item.unwrap().0).collect::<Vec<_>>();
    assert_eq!(order(&first), order(&second));
    assert_eq!(format!("{key:?}"), "HashKey(..)");
}
