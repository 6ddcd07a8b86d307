//! A small database on a simulated disk, for tests of failing operations and of full disks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Environment, Error, Keyspace, LevelsPlan, Plan};
use alluvium_io::{FaultPlan, SimulatedClock, SimulatedStorage};

pub fn plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 4_000;
    log.segment_bytes_max = 64 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

pub fn open(storage: &SimulatedStorage, durability: Durability) -> (Db, Keyspace) {
    let environment = Environment { random_seed: 5, ..Environment::over(Arc::new(storage.clone())) };
    let environment = Environment { clock: Arc::new(SimulatedClock::default()), ..environment };
    let builder = Db::builder("failing").plan(plan()).background(false).durability(durability);
    let db = builder.blob_sizes(1 << 20, 16 << 10, 8 << 10).environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    (db, items)
}

pub fn without_descriptors(storage: &SimulatedStorage) {
    storage.set_faults(FaultPlan { fail_opens: Some(0..u64::MAX), ..FaultPlan::default() });
}

pub fn used_bytes(storage: &SimulatedStorage) -> u64 {
    storage.used_bytes()
}

/// Tables, blob files and spills.
pub fn files(storage: &SimulatedStorage) -> Vec<String> {
    let is_counted = |name: &String| ["table-", "blob-", "spill-"].iter().any(|kind| name.starts_with(kind));
    storage.contents().into_keys().filter(is_counted).collect()
}

/// Those of them that no manifest names: the next opening removes them.
pub fn garbage(storage: &SimulatedStorage) -> Vec<String> {
    let copy = SimulatedStorage::from_contents(9, &storage.contents());
    let _open = open(&copy, Durability::Buffered);
    let kept = files(&copy);
    files(storage).into_iter().filter(|name| !kept.contains(name)).collect()
}

pub fn number(number: u32) -> [u8; 4] {
    number.to_le_bytes()
}

/// Writes until an operation fails; returns how many items were acknowledged, and the failure.
pub fn write_until_it_fails(items: &Keyspace, value: &[u8]) -> (u32, Error) {
    let mut acknowledged = 0;
    loop {
        match items.insert(number(acknowledged), value) {
            Ok(()) => acknowledged += 1,
            Err(error) => return (acknowledged, error),
        }
    }
}

/// Writes the item as soon as the disk is no longer full, which the database finds out by itself.
pub fn insert_once_there_is_room(items: &Keyspace, key: &str, value: &[u8]) {
    const MINUTE: Duration = Duration::from_secs(60);
    let began = Instant::now();
    while let Err(error) = items.insert(key, value) {
        assert!(matches!(error, Error::DiskFull { .. }) && began.elapsed() < MINUTE, "{error}");
        std::thread::yield_now();
    }
}
