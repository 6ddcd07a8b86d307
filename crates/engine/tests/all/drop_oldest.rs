//! A database that drops its oldest items at its disk limit: it may forget items, and never returns an older one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::{Builder, Db, Durability, Error, Keyspace, LevelsPlan, Plan};
use proptest::prelude::*;

const MIB: u64 = 1 << 20;

/// A plan whose levels are reached by few items.
fn small(name: &str) -> Plan {
    let mut plan = LevelsPlan::try_from(Plan::named(name).unwrap()).unwrap();
    plan.log.segment_bytes_max = 256 << 10;
    plan.sharding.log_entries_per_shard = 512;
    plan.into()
}

fn value(number: u32, version: u32, bytes: usize) -> Vec<u8> {
    format!("{number} {version} ").into_bytes().into_iter().cycle().take(bytes).collect()
}

fn open(directory: &tempfile::TempDir, settings: impl Fn(Builder) -> Builder) -> (Db, Keyspace) {
    let builder = Db::builder(directory.path()).durability(Durability::Buffered).drop_oldest(true);
    let db = settings(builder).open().unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (db, keyspace)
}

fn bytes_on_disk(directory: &tempfile::TempDir) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let files = std::fs::read_dir(directory.path()).unwrap();
    files.map(|file| file.unwrap().metadata().map_or(0, |file| file.blocks() * 512)).sum()
}

#[test]
fn the_youngest_items_stay_under_the_limit() {
    const MAX: u64 = 24 * MIB;
    for name in ["tiered", "lsm-trie", "silt"] {
        let directory = tempfile::tempdir().unwrap();
        let limited =
            |builder: Builder| builder.plan(small(name)).disk_bytes_max(MAX).table_sizes(64 << 10, 1 << 20);
        let (db, keyspace) = open(&directory, limited);
        let count = 150_000_u32;
        for number in 0..count {
            keyspace.insert(number.to_le_bytes(), value(number, 0, 300)).unwrap();
        }
        db.flush().unwrap();
        db.wait_idle().unwrap();
        assert!(bytes_on_disk(&directory) <= MAX, "{name}: {}", bytes_on_disk(&directory));
        let stats = db.stats();
        assert!(stats.oldest_items_dropped > u64::from(count) / 2, "{name}: {stats:?}");
        let has = |number: u32| {
            let found = keyspace.get(number.to_le_bytes()).unwrap();
            assert!(found.as_ref().is_none_or(|found| *found == value(number, 0, 300)), "{name} {number}");
            found.is_some()
        };
        let present_of =
            |numbers: std::ops::Range<u32>| numbers.step_by(32).filter(|&number| has(number)).count();
        let present = present_of(0..count);
        assert!(present as u64 * 32 * 300 > MAX / 5, "{name}: {present}");
        assert!((count - 1_000..count).step_by(8).all(has), "{name}: the youngest are there");
        if name != "silt" {
            let present_of_old = present_of(0..count / 2);
            assert!(present_of_old * 20 < present, "{name}: {present_of_old} of {present} are old");
        }
        // The manifest says the same.
        drop((keyspace, db));
        let (db, keyspace) = open(&directory, limited);
        let numbers = (0..count).step_by(32);
        let found = numbers.filter(|number| keyspace.get(number.to_le_bytes()).unwrap().is_some()).count();
        assert!(found <= present && found * 2 > present, "{name}: {found} {present}");
        assert_eq!(db.verify().unwrap().problems, [""; 0], "{name}");
    }
}

#[test]
fn a_limit_that_leaves_nothing_to_drop_refuses_writes_and_hangs_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (db, keyspace) = open(&directory, |builder| builder.plan(small("tiered")).disk_bytes_max(MIB));
    assert!(matches!(keyspace.insert("key", "value"), Err(Error::DiskQuota { .. })));
    db.flush().unwrap();
    db.wait_idle().unwrap();
    db.compact().unwrap();
}

#[test]
fn keyspaces_that_nobody_uses_lose_their_older_items() {
    let directory = tempfile::tempdir().unwrap();
    let limited = |builder: Builder| builder.plan(small("tiered")).disk_bytes_max(40 * MIB);
    let (db, keyspace) = open(&directory, limited);
    let others: Vec<_> = (0..2).map(|other| db.keyspace(&format!("other-{other}")).unwrap()).collect();
    for number in 0..10_000_u32 {
        others[0].insert(number.to_le_bytes(), value(number, 0, 300)).unwrap();
        others[1].insert(number.to_le_bytes(), value(number, 1, 300)).unwrap();
    }
    db.flush().unwrap();
    db.wait_idle().unwrap();
    drop((others, keyspace, db));
    let (db, keyspace) = open(&directory, limited);
    for number in 0..150_000_u32 {
        keyspace.insert(number.to_le_bytes(), value(number, 2, 300)).unwrap();
    }
    let other = db.keyspace("other-0").unwrap();
    assert!((0..10_000_u32).step_by(16).all(|number| other.get(number.to_le_bytes()).unwrap().is_none()));
    assert_eq!(keyspace.get(149_999_u32.to_le_bytes()).unwrap(), Some(value(149_999, 2, 300)));
}

#[test]
fn a_snapshot_keeps_what_it_sees() {
    let directory = tempfile::tempdir().unwrap();
    let limited = |builder: Builder| builder.plan(small("tiered")).disk_bytes_max(40 * MIB);
    let (db, keyspace) = open(&directory, limited);
    for number in 0..20_000_u32 {
        keyspace.insert(number.to_le_bytes(), value(number, 0, 300)).unwrap();
    }
    db.flush().unwrap();
    let snapshot = db.snapshot().unwrap();
    let refused = (20_000..500_000_u32)
        .find_map(|number| keyspace.insert(number.to_le_bytes(), value(number, 0, 300)).err());
    assert!(matches!(refused, None | Some(Error::DiskQuota { .. })), "{refused:?}");
    let kept = snapshot.keyspace("k").unwrap();
    for number in 0..20_000_u32 {
        assert_eq!(kept.get(number.to_le_bytes()).unwrap(), Some(value(number, 0, 300)));
    }
    drop((kept, snapshot));
    for number in 0..200_000_u32 {
        keyspace.insert(number.to_le_bytes(), value(number, 1, 300)).unwrap();
    }
    assert!(db.stats().oldest_items_dropped > 0);
}

/// Real threads: writers, each with its own keys, beside readers and background work.
#[test]
fn no_older_item_returns_beside_writers() {
    let directory = tempfile::tempdir().unwrap();
    let limited = |builder: Builder| builder.plan(small("tiered")).disk_bytes_max(40 * MIB);
    let (db, keyspace) = open(&directory, limited);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2_u32)
            .map(|writer| {
                let keyspace = &keyspace;
                scope.spawn(move || {
                    for version in 0..6 {
                        for number in (writer..60_000).step_by(2) {
                            let key = number.to_le_bytes();
                            if (number + version) % 5 == 0 {
                                keyspace.remove(key).unwrap();
                            } else {
                                keyspace.insert(key, value(number, version, 400)).unwrap();
                            }
                        }
                        for number in (writer..60_000).step_by(2) {
                            let found = keyspace.get(number.to_le_bytes()).unwrap();
                            let is_gone = (number + version) % 5 == 0;
                            let is_right =
                                |found: &Vec<u8>| !is_gone && *found == value(number, version, 400);
                            assert!(found.as_ref().is_none_or(is_right), "{number} {version}");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let found = keyspace.iter().take(2_000).filter(Result::is_ok).count();
                assert!(found <= 2_000);
            }
        });
        let ended: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.unwrap());
    });
    assert!(db.stats().oldest_items_dropped > 0);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32),
    InsertLarge(u32),
    Remove(u32),
    Fill(u32),
    Flush,
    Compact,
    WorkInBackground,
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KEYS).prop_map(Step::Insert),
        4 => (0..KEYS).prop_map(Step::InsertLarge),
        5 => (0..KEYS).prop_map(Step::Remove),
        6 => (0..1_000_u32).prop_map(Step::Fill),
        4 => Just(Step::Flush),
        1 => Just(Step::Compact),
        6 => Just(Step::WorkInBackground),
        1 => Just(Step::Reopen),
    ]
}

const KEYS: u32 = 24;
const PLANS: [&str; 6] = ["tiered", "lsm-trie", "silt", "silt-tiering", "slimdb", "slimdb-tiering"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Fills push the few keys that the model knows towards the end of the database.
    #[test]
    fn a_key_has_its_last_item_or_none(
        steps in prop::collection::vec(step(), 1..80),
        plan in 0..PLANS.len(),
        megabytes in 18_u64..24,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let settings = |builder: Builder| {
            let builder = builder.plan(small(PLANS[plan])).disk_bytes_max(megabytes * MIB).background(false);
            builder.table_sizes(64 << 10, 256 << 10).blob_sizes(64 << 10, 4_000, 0)
        };
        let (mut db, mut keyspace) = open(&directory, settings);
        let mut model: BTreeMap<u32, Option<Vec<u8>>> = BTreeMap::new();
        for (number, &step) in (0..).zip(&steps) {
            let mut insert = |key: u32, bytes: usize| {
                let value = value(key, number, bytes);
                match keyspace.insert(key.to_le_bytes(), &value) {
                    Ok(()) => drop(model.insert(key, Some(value))),
                    Err(Error::DiskQuota { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            match step {
                Step::Insert(key) => insert(key, 40),
                Step::InsertLarge(key) => insert(key, 30_000),
                Step::Remove(key) => {
                    keyspace.remove(key.to_le_bytes()).unwrap();
                    model.insert(key, None);
                }
                Step::Fill(seed) => {
                    for other in 0..1_000 {
                        let key = [KEYS + 1 + seed * 2_000 + other, number].map(u32::to_le_bytes).concat();
                        match keyspace.insert(key, value(other, number, 500)) {
                            Ok(()) | Err(Error::DiskQuota { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
                Step::Flush => db.flush().unwrap(),
                Step::Compact => db.compact().unwrap(),
                Step::WorkInBackground => while db.run_background_job().unwrap() {},
                Step::Reopen => {
                    db.persist().unwrap();
                    drop((keyspace, db));
                    (db, keyspace) = open(&directory, settings);
                }
            }
            for key in 0..KEYS {
                let found = keyspace.get(key.to_le_bytes()).unwrap();
                let last = model.get(&key).cloned().flatten();
                prop_assert!(found.is_none() || found == last, "{key} after {step:?}");
                if found.is_none() {
                    // What is gone stays so.
                    model.insert(key, None);
                }
            }
        }
        prop_assert_eq!(db.verify().unwrap().problems, [""; 0]);
    }
}
