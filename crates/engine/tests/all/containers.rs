//! Containers stay as large as the plan requires, however long merges split and join them.

use std::sync::Arc;

use alluvium::{Db, Environment, LevelsPlan, Plan};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const TABLE_BYTES_MIN: u64 = 4 << 10;

fn level(growth: Growth) -> LevelSpec {
    let filter = Filter::Cuckoo { tag_bits: 10 };
    LevelSpec { growth, table: TableLayout::Sorted, filter, index: Index::Fences }
}

fn tiering(runs_max: u32) -> LevelSpec {
    level(Growth::Tiering { runs_max, share: Growth::ANY_SHARE })
}

fn open(levels: Vec<LevelSpec>) -> Db {
    let LevelsPlan { mut sharding, mut log, .. } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 64;
    sharding.items_per_shard = 300;
    sharding.shards_max = 4;
    log.segment_bytes_max = 64 << 10;
    let environment = Environment {
        clock: Arc::new(SimulatedClock::default()),
        random_seed: 5,
        ..Environment::over(Arc::new(SimulatedStorage::new(3)))
    };
    let builder =
        Db::builder("containers").plan(Plan::Levels(LevelsPlan { sharding, log, levels })).background(false);
    builder.table_sizes(TABLE_BYTES_MIN, 3 * TABLE_BYTES_MIN).environment(environment).open().unwrap()
}

#[test]
fn tables_do_not_become_ever_smaller() {
    let plans = [
        vec![tiering(2), tiering(2), tiering(3)],
        vec![tiering(2), level(Growth::Leveling { ratio: 1.5 }), tiering(3)],
        vec![tiering(2), tiering(2), level(Growth::Leveling { ratio: 2.0 })],
    ];
    for levels in plans {
        let db = open(levels);
        let keyspace = db.keyspace("items").unwrap();
        let mut rng = StdRng::seed_from_u64(11);
        for step in 0..16_000u32 {
            let key = format!("key-{}", rng.random_range(0..2500)).into_bytes();
            match rng.random_range(0..4) {
                0 => keyspace.remove(&key).unwrap(),
                _ => keyspace.insert(&key, format!("value {step} {}", "x".repeat(40)).as_bytes()).unwrap(),
            }
            if step % 40 == 0 {
                while db.run_background_job().unwrap() {}
            }
        }
        let levels = db.stats().levels;
        // The smallest have about fifty.
        let tables: u64 = levels[2..].iter().map(|level| level.tables as u64).sum();
        let items: u64 = levels[2..].iter().map(|level| level.items).sum();
        assert!(tables <= items / 10 + 16, "{levels:?}");
    }
}
