//! No log file is ever created under a name that another one has, however often a process dies.

use std::sync::Arc;

use alluvium::{Db, Durability, Environment, Keyspace, LevelsPlan, Plan};
use alluvium_io::SimulatedStorage;

fn open(storage: &SimulatedStorage) -> Db {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 4_000;
    // Smaller than the distance after which written data are flushed: headers stay in memory for a long time.
    log.segment_bytes_max = 64 << 10;
    let environment = Environment::over(Arc::new(storage.clone()));
    let builder =
        Db::builder("names").plan(Plan::Levels(LevelsPlan { sharding, log, levels })).background(false);
    builder.durability(Durability::Buffered).environment(environment).open().unwrap()
}

/// Writes items, about 290 of which fill a log segment.
fn fill(items: &Keyspace, count: u32) {
    for number in 0..count {
        items.insert(number.to_le_bytes(), [7; 200]).unwrap();
    }
}

/// Segments whose headers never reached the device pass their numbers on to others, while their files still exist: one
/// of them in use, one removed, and one about to be reused.
#[test]
fn a_number_that_is_used_again_gives_no_name_that_is_taken() {
    let storage = SimulatedStorage::new(1);
    let db = open(&storage);
    let items = db.keyspace("items").unwrap();
    fill(&items, 100);
    db.persist().unwrap();
    fill(&items, 900);
    storage.kill();
    drop((items, db));
    let db = open(&storage.reopen());
    let items = db.keyspace("items").unwrap();
    let reader = items.iter();
    while db.run_background_job().unwrap() {}
    fill(&items, 700);
    drop(reader);
    assert!(items.get(0_u32.to_le_bytes()).unwrap().is_some());
}
