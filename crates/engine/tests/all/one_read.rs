//! Runs under one filter: a get of a present key reads once, however many runs there are, however many keys share a
//! fingerprint, and whether writes were blind or not. The storage counts the reads, key by key.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Db, Environment, Keyspace, KeyspaceOptions, LevelsPlan, Plan, PrefixRule, Update};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// With 4 bits half of all keys meet an existing fingerprint.
const FINGERPRINT_BITS: u32 = 4;
const KEYS: u32 = 6000;
/// So many that few are overwritten while runs collect: old values would cause them to be merged earlier.
const MANY_KEYS: u32 = 40_000;

type Model = BTreeMap<Vec<u8>, Option<u64>>;

/// Levels of up to this many runs.
fn plan(index: Index, runs_max: &[u32]) -> Plan {
    let LevelsPlan { mut sharding, mut log, .. } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 1 << 11;
    sharding.shards_max = 2;
    sharding.items_per_shard = 2000;
    log.segment_bytes_max = 1 << 20;
    let level = |&runs_max: &u32| LevelSpec {
        growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
        table: TableLayout::Sorted,
        filter: Filter::MultiLevelCuckoo { tag_bits: FINGERPRINT_BITS },
        index,
    };
    Plan::Levels(LevelsPlan { sharding, log, levels: runs_max.iter().map(level).collect() })
}

struct Store {
    db: Db,
    items: Keyspace,
    storage: SimulatedStorage,
    model: Model,
    rng: StdRng,
    keys: u32,
}

impl Store {
    fn open(is_semi_sorted: bool, runs_max: &[u32], keys: u32) -> Self {
        let storage = SimulatedStorage::new(3);
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: 5,
            ..Environment::over(Arc::new(storage.clone()))
        };
        let index = if is_semi_sorted { Index::ThreeLevel } else { Index::Fences };
        let builder = Db::builder("one-read").plan(plan(Index::Fences, runs_max)).background(false);
        let db = builder.expected_items(4000).environment(environment).open().unwrap();
        let options = match is_semi_sorted {
            true => {
                KeyspaceOptions::semi_sorted(PrefixRule::Length { bytes: 3 }).with_plan(plan(index, runs_max))
            }
            false => KeyspaceOptions::default(),
        };
        let items = db.keyspace_with("items", &options).unwrap();
        Self { db, items, storage, model: Model::new(), rng: StdRng::seed_from_u64(7), keys }
    }

    fn key(number: u32) -> Vec<u8> {
        format!("{:03}-{number}", number % 50).into_bytes()
    }

    /// Blind puts and removals, and writes that read first.
    fn write(&mut self, count: u32) {
        for _ in 0..count {
            let key = Self::key(self.rng.random_range(0..self.keys));
            let value = self.rng.random::<u64>();
            match self.rng.random_range(0..5) {
                0 => {
                    self.items.remove(&key).unwrap();
                    self.model.insert(key, None);
                }
                1 => {
                    let set = |_: Option<&[u8]>| Update::Insert(value.to_le_bytes().to_vec());
                    let before = self.items.update(&key, set).unwrap();
                    let expected = self.model.get(&key).copied().flatten();
                    assert_eq!(before, expected.map(|value| value.to_le_bytes().to_vec()));
                    self.model.insert(key, Some(value));
                }
                _ => {
                    self.items.insert(&key, value.to_le_bytes()).unwrap();
                    self.model.insert(key, Some(value));
                }
            }
        }
    }

    /// Gets every key separately. For keys that were never present a filter may name a run, but only one.
    fn check(&self, reads_max: u64) {
        // So that indexes are loaded.
        for number in 0..self.keys {
            let _ = self.items.get(Self::key(number)).unwrap();
        }
        for number in 0..self.keys {
            let key = Self::key(number);
            let before = self.storage.read_count();
            let found = self.items.get(&key).unwrap();
            let reads = self.storage.read_count() - before;
            let expected = self.model.get(&key).copied().flatten();
            assert_eq!(found, expected.map(|value| value.to_le_bytes().to_vec()));
            assert!(reads <= reads_max, "{reads} reads of key {number}, which is {expected:?}");
        }
    }
}

#[test]
fn a_get_reads_one_of_eight_runs_at_most() {
    for is_semi_sorted in [false, true] {
        let mut store = Store::open(is_semi_sorted, &[8, 8], KEYS);
        for _ in 0..7 {
            store.write(900);
            store.db.flush().unwrap();
        }
        let levels = store.db.stats().levels;
        assert!(levels[1].runs >= 7 && levels[2].items == 0, "{levels:?}");
        store.check(1);
    }
}

#[test]
fn a_get_reads_once_a_level_at_most() {
    for is_semi_sorted in [false, true] {
        let mut store = Store::open(is_semi_sorted, &[3, 8, 8], MANY_KEYS);
        let mut rounds = 0;
        while store.db.stats().levels[2].runs < 5 {
            store.write(700);
            store.db.flush().unwrap();
            while store.db.run_background_job().unwrap() {}
            rounds += 1;
            assert!(rounds < 100, "{:?}", store.db.stats().levels);
        }
        store.check(3);
        assert_eq!(store.db.verify().unwrap().problems, [""; 0]);
    }
}
