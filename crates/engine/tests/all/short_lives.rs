//! Items that are removed or overwritten while they are in the log: they reach no table, cost no read and leave no
//! space taken, and what snapshots and iterators see does not change.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::{
    Db, Durability, Environment, Iter, KeyspaceSnapshot, LevelsPlan, Plan, PlantedBugs, PlantedRace, Snapshot,
};
use alluvium_io::SimulatedStorage;
use proptest::prelude::*;

fn plan(log_entries_per_shard: u32) -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = log_entries_per_shard;
    log.segment_bytes_max = 4 << 20;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

#[test]
fn a_queue_shorter_than_the_log_reaches_no_table() {
    const LENGTH: u64 = 2_000;
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(plan(1_000)).background(false);
    let db = builder.durability(Durability::Buffered).open().unwrap();
    let queue = db.keyspace("queue").unwrap();
    for number in 0..120_000_u64 {
        queue.insert(number.to_be_bytes(), [7; 40]).unwrap();
        if let Some(head) = number.checked_sub(LENGTH) {
            assert!(queue.get_with(head.to_be_bytes(), |value| value == [7; 40]).unwrap().unwrap());
            queue.remove(head.to_be_bytes()).unwrap();
        }
    }
    let traffic = db.stats().traffic;
    assert!((3..15).contains(&traffic.freezes), "{traffic:?}");
    assert!(traffic.log_items_dropped > 10_000, "{traffic:?}");
    assert_eq!((traffic.page_reads, traffic.hash_bytes_written), (0, 0), "{traffic:?}");
    db.flush().unwrap();
    assert_eq!(queue.count().unwrap(), LENGTH);
    assert!(db.stats().traffic.hash_bytes_written > 0);
}

/// Without tombstones a log store has as many items as the plan says, however often they are overwritten.
#[test]
fn a_log_of_items_that_stay_does_not_grow() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(plan(1_000)).background(false);
    let db = builder.durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..40_000_u64 {
        items.insert((number % 20_000).to_be_bytes(), [7; 40]).unwrap();
    }
    let traffic = db.stats().traffic;
    assert!(traffic.freezes >= 35 && traffic.log_items_dropped == 0, "{traffic:?}");
}

/// The log of a queue grows within the memory limit, and where that gains nothing it seldom grows.
#[test]
fn a_growing_log_keeps_to_the_memory_limit() {
    const LIMIT: u64 = 16 << 20;
    for length in [4_000_u64, 100_000] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).memory_bytes_max(LIMIT);
        let db = builder.durability(Durability::Buffered).open().unwrap();
        let queue = db.keyspace("queue").unwrap();
        let mut log_bytes_max = 0;
        for number in 0..300_000_u64 {
            queue.insert(number.to_be_bytes(), [7; 40]).unwrap();
            if let Some(head) = number.checked_sub(length) {
                queue.remove(head.to_be_bytes()).unwrap();
            }
            if number % 500 == 0 {
                let memory = db.stats().memory;
                log_bytes_max = log_bytes_max.max(memory.write_buffer + memory.log_index);
                assert!(memory.write_buffer + memory.log_index <= LIMIT / 128 * (8 * 4 + 8), "{memory:?}");
            }
        }
        db.wait_idle().unwrap();
        let traffic = db.stats().traffic;
        assert!(log_bytes_max > 1 << 20 && queue.count().unwrap() == length, "{log_bytes_max}");
        // Only the short queue gains by growth.
        assert_eq!(traffic.log_items_dropped > 200_000, length == 4_000, "{traffic:?}");
    }
}

/// Bytes on the device, of files whose names begin like this.
fn bytes_of(path: &Path, start: &str) -> u64 {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
}

/// 150 MB of one key's values fill two segments of the default size. Nearly nothing is left of them.
#[test]
fn obsolete_versions_of_a_hot_key_give_the_space_of_the_log_back() {
    for background in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).background(background);
        let db = builder.durability(Durability::Buffered).open().unwrap();
        let items = db.keyspace("items").unwrap();
        items.insert(b"cold", [1; 100]).unwrap();
        for number in 0..150_000_u32 {
            let mut value = [0; 1000];
            value[..4].copy_from_slice(&number.to_le_bytes());
            items.insert(b"hot", value).unwrap();
        }
        db.wait_idle().unwrap();
        // A thread may look at the log for a moment longer, and gives its space back after that.
        let deadline = Instant::now() + Duration::from_secs(60);
        while bytes_of(directory.path(), "") > 6 << 20 {
            let bytes = bytes_of(directory.path(), "log-");
            assert!(background && Instant::now() < deadline, "{bytes} bytes of log");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(items.get(b"hot").unwrap().unwrap()[..4], 149_999_u32.to_le_bytes());
        assert_eq!(items.get(b"cold").unwrap().unwrap(), [1; 100]);
        // The log continues in the trimmed files, and a crash loses nothing that is synced.
        items.insert(b"hot", b"last").unwrap();
        db.persist().unwrap();
        assert_eq!(items.get(b"hot").unwrap().unwrap(), b"last");
    }
}

/// Whether a durable value is lost if the power is cut right after a conversion dropped it because of a younger one.
fn loses_a_durable_value(race: Option<PlantedRace>) -> bool {
    let storage = SimulatedStorage::new(1);
    let planted_bugs = PlantedBugs { race, ..PlantedBugs::default() };
    let environment = Environment { planted_bugs, ..Environment::over(Arc::new(storage.clone())) };
    let builder = Db::builder("short lives").plan(plan(1_000)).background(false);
    let db = builder.durability(Durability::Buffered).environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    items.insert(b"key", b"durable").unwrap();
    db.persist().unwrap();
    drop(db.snapshot().unwrap());
    items.insert(b"key", b"younger").unwrap();
    assert!(db.run_background_job().unwrap());
    assert_eq!(db.stats().traffic.log_items_dropped, 1);
    storage.crash();
    drop((items, db));
    open(&storage.reopen()).keyspace("items").unwrap().get(b"key").unwrap().is_none()
}

#[test]
fn what_hides_a_dropped_item_is_synced_first() {
    assert!(!loses_a_durable_value(None));
    assert!(loses_a_durable_value(Some(PlantedRace::DropWithoutSync)));
}

/// What is done to a few keys.
#[derive(Debug, Clone)]
enum Step {
    Put(u8),
    Remove(u8),
    /// Freezes the log without converting it.
    Freeze,
    Convert,
    Settle,
    Flush,
    Snapshot,
    ForgetSnapshot,
    Iterate,
    /// Loses what is not durable.
    Crash,
    Persist,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..12_u8).prop_map(Step::Put),
        8 => (0..12_u8).prop_map(Step::Remove),
        5 => Just(Step::Freeze),
        5 => Just(Step::Convert),
        1 => Just(Step::Settle),
        1 => Just(Step::Flush),
        1 => Just(Step::Snapshot),
        2 => Just(Step::ForgetSnapshot),
        1 => Just(Step::Iterate),
        1 => Just(Step::Crash),
        1 => Just(Step::Persist),
    ];
    prop::collection::vec(step, 1..120)
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn open(storage: &SimulatedStorage) -> Db {
    let environment = Environment::over(Arc::new(storage.clone()));
    let builder = Db::builder("short lives").plan(plan(1_000)).background(false);
    builder.durability(Durability::Buffered).environment(environment).open().unwrap()
}

fn check_snapshot(snapshot: &KeyspaceSnapshot, model: &Model) {
    for key in (0..12_u8).map(|key| vec![key]) {
        assert_eq!(snapshot.get(&key).unwrap().as_ref(), model.get(&key));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every state that a crash leaves is one that the writes went through, not before the last one that was durable.
    #[test]
    fn nothing_is_lost_or_back_when_items_die_in_the_log(steps in steps()) {
        let mut storage = SimulatedStorage::new(1);
        let mut db = open(&storage);
        let mut items = db.keyspace("items").unwrap();
        let mut model = Model::new();
        // All states since the last one that is durable.
        let mut states = vec![model.clone()];
        let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
        let mut iterators: Vec<(Iter, Model)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put(key) => {
                    let value = number.to_le_bytes().to_vec();
                    items.insert([key], &value).unwrap();
                    model.insert(vec![key], value);
                    states.push(model.clone());
                }
                Step::Remove(key) => {
                    items.remove([key]).unwrap();
                    model.remove(&vec![key]);
                    states.push(model.clone());
                }
                Step::Freeze => drop(db.snapshot().unwrap()),
                Step::Convert => drop(db.run_background_job().unwrap()),
                Step::Settle => db.wait_idle().unwrap(),
                Step::Flush => {
                    db.flush().unwrap();
                    states = vec![model.clone()];
                }
                Step::Snapshot => snapshots.push((db.snapshot().unwrap(), model.clone())),
                Step::ForgetSnapshot => drop(snapshots.pop()),
                Step::Iterate => iterators.push((items.iter(), model.clone())),
                Step::Persist => {
                    db.persist().unwrap();
                    states = vec![model.clone()];
                }
                Step::Crash => {
                    storage.kill();
                    snapshots.clear();
                    iterators.clear();
                    drop((items, db));
                    storage = storage.reopen();
                    db = open(&storage);
                    items = db.keyspace("items").unwrap();
                    let found: Model = items.iter().map(|item| item.unwrap()).collect();
                    prop_assert!(states.contains(&found), "{found:?} was never the content");
                    model = found;
                    states = vec![model.clone()];
                }
            }
            for key in (0..12_u8).map(|key| vec![key]) {
                let found = items.get(&key).unwrap();
                prop_assert_eq!(found.as_ref(), model.get(&key));
            }
            for (snapshot, model) in &snapshots {
                check_snapshot(&snapshot.keyspace("items").unwrap(), model);
            }
        }
        for (iterator, began) in iterators {
            let found: Model = iterator.map(|item| item.unwrap()).collect();
            // Items that were there all the time are found.
            for (key, value) in began.iter().filter(|&(key, value)| model.get(key) == Some(value)) {
                prop_assert_eq!(found.get(key), Some(value));
            }
        }
    }
}
