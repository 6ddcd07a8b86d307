//! The store compared with a map: random operations, many sizes, through conversion, merging and reopening.

use std::collections::HashMap;

use alluvium::{Db, Durability, LevelsPlan, Plan, Update};
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// A plan with small sizes, so that a few thousand items go through all levels.
fn small_plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 128;
    sharding.items_per_shard = 512;
    log.segment_bytes_max = 128 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn value(rng: &mut StdRng) -> Vec<u8> {
    let len = match rng.random_range(0..10) {
        0 => 0,
        1..=7 => rng.random_range(1..120),
        _ => rng.random_range(120..1500),
    };
    let mut value = vec![0; len];
    rng.fill_bytes(&mut value);
    value
}

/// The small plan with other levels.
fn plan_of(levels: Vec<LevelSpec>) -> Plan {
    let Plan::Levels(LevelsPlan { sharding, log, .. }) = small_plan() else { unreachable!() };
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn tiering(runs_max: u32, filter: Filter) -> LevelSpec {
    let growth = Growth::Tiering { runs_max, share: Growth::ANY_SHARE };
    LevelSpec { growth, table: TableLayout::Sorted, filter, index: Index::Fences }
}

fn leveling(ratio: f64, filter: Filter) -> LevelSpec {
    LevelSpec { growth: Growth::Leveling { ratio }, ..tiering(2, filter) }
}

fn of_hash(runs_max: u32) -> LevelSpec {
    let LevelsPlan { levels, .. } = LevelsPlan::silt();
    LevelSpec { growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE }, ..levels[0] }
}

const CUCKOO: Filter = Filter::Cuckoo { tag_bits: 12 };

#[test]
fn random_operations_agree_with_a_map() {
    agrees_with_a_map(&small_plan());
}

#[test]
fn random_operations_on_leveling_levels_agree_with_a_map() {
    let level = leveling(1.5, CUCKOO);
    agrees_with_a_map(&plan_of(vec![of_hash(2), level, level, leveling(2.0, Filter::None)]));
}

#[test]
fn random_operations_on_tiering_levels_agree_with_a_map() {
    agrees_with_a_map(&plan_of(vec![of_hash(2), tiering(2, CUCKOO), tiering(3, CUCKOO)]));
}

#[test]
fn random_operations_on_mixed_levels_of_sorted_tables_agree_with_a_map() {
    let trie = LevelSpec { index: Index::Trie, ..tiering(2, Filter::None) };
    let levels = vec![tiering(2, CUCKOO), leveling(1.5, CUCKOO), trie, leveling(2.0, Filter::None)];
    agrees_with_a_map(&plan_of(levels));
}

#[test]
fn random_operations_on_tables_in_buckets_agree_with_a_map() {
    let bucketed = |runs_max, on_flash| {
        let filter = Filter::BloomCluster { on_flash };
        LevelSpec { table: TableLayout::Bucketed, index: Index::Implicit, ..tiering(runs_max, filter) }
    };
    agrees_with_a_map(&plan_of(vec![bucketed(2, false), bucketed(2, false), bucketed(20, true)]));
}

#[test]
fn random_operations_on_levels_with_static_filters_agree_with_a_map() {
    // So narrow that many lookups read in vain.
    let sorted = |runs_max, bits| tiering(runs_max, Filter::Static { bits });
    let bucketed = |runs_max, bits| {
        let level = sorted(runs_max, bits);
        LevelSpec { table: TableLayout::Bucketed, index: Index::Implicit, ..level }
    };
    agrees_with_a_map(&plan_of(vec![sorted(2, 3), bucketed(2, 9), sorted(20, 1)]));
    agrees_with_a_map(&plan_of(vec![bucketed(2, 3), sorted(2, 9), bucketed(20, 1)]));
}

#[test]
fn random_operations_on_dense_tries_agree_with_a_map() {
    // So short that many lookups read in vain.
    let dense = |level: LevelSpec, bits| LevelSpec {
        filter: Filter::Fragments { bits },
        index: Index::TrieDense,
        ..level
    };
    let bare = LevelSpec { index: Index::TrieDense, ..leveling(2.0, Filter::None) };
    let levels = vec![dense(tiering(2, CUCKOO), 3), dense(leveling(1.5, CUCKOO), 7), bare];
    agrees_with_a_map(&plan_of(levels));
    agrees_with_a_map(&plan_of(vec![of_hash(2), dense(tiering(20, CUCKOO), 1)]));
}

#[test]
fn random_operations_on_runs_under_one_filter_agree_with_a_map() {
    // So narrow that many keys share a fingerprint.
    let named = |runs_max| tiering(runs_max, Filter::MultiLevelCuckoo { tag_bits: 4 });
    agrees_with_a_map(&plan_of(vec![named(3), named(4), named(8)]));
}

#[test]
fn random_operations_on_one_level_agree_with_a_map() {
    let offsets = |level: LevelSpec| LevelSpec { index: Index::Offsets, filter: CUCKOO, ..level };
    for level in [of_hash(3), tiering(20, CUCKOO), leveling(2.0, Filter::None), offsets(tiering(4, CUCKOO))] {
        agrees_with_a_map(&plan_of(vec![level]));
    }
    agrees_with_a_map(&plan_of(vec![offsets(tiering(3, CUCKOO)), offsets(leveling(2.0, CUCKOO))]));
}

fn agrees_with_a_map(plan: &Plan) {
    let directory = tempfile::tempdir().unwrap();
    let mut occupied = vec![false; levels_of(plan)];
    let mut rng = StdRng::seed_from_u64(1);
    let mut model: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
    let open = |background: bool| {
        let db = Db::builder(directory.path())
            .plan(plan.clone())
            .durability(Durability::Buffered)
            .table_sizes(4 << 10, 32 << 10)
            .background(background)
            .open()
            .unwrap();
        let items = db.keyspace("items").unwrap();
        (db, items)
    };
    for round in 0..6 {
        let (db, items) = open(round % 2 == 0);
        for _ in 0..4000 {
            let key = format!("key{}", rng.random_range(0..3000)).into_bytes();
            match rng.random_range(0..12) {
                0..=5 => {
                    let value = value(&mut rng);
                    items.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                6 => {
                    items.remove(&key).unwrap();
                    model.remove(&key);
                }
                7 => {
                    let before = items
                        .update(&key, |before| {
                            let mut value = before.unwrap_or_default().to_vec();
                            value.truncate(1000);
                            value.push(b'+');
                            Update::Insert(value)
                        })
                        .unwrap();
                    assert_eq!(before.as_ref(), model.get(&key));
                    let value = model.entry(key).or_default();
                    value.truncate(1000);
                    value.push(b'+');
                }
                8 => {
                    let mut batch = db.batch();
                    for step in 0..rng.random_range(1..20) {
                        let key = format!("key{}", rng.random_range(0..3000)).into_bytes();
                        if step % 4 == 3 {
                            batch.remove(&items, key.clone());
                            model.remove(&key);
                        } else {
                            let value = value(&mut rng);
                            batch.insert(&items, key.clone(), value.clone());
                            model.insert(key, value);
                        }
                    }
                    batch.commit().unwrap();
                }
                _ => assert_eq!(items.get(&key).unwrap().as_ref(), model.get(&key)),
            }
            if round % 2 == 1 && rng.random_range(0..50) == 0 {
                db.run_background_job().unwrap();
            }
            if rng.random_range(0..20) == 0 {
                for (occupied, level) in occupied.iter_mut().zip(&db.stats().levels[1..]) {
                    *occupied |= level.items > 0;
                }
            }
        }
        let keys: Vec<String> = (0..3200).map(|number| format!("key{number}")).collect();
        let values = items.multi_get(&keys).unwrap();
        for (key, value) in keys.iter().zip(&values) {
            assert_eq!(value.as_ref(), model.get(key.as_bytes()), "{key}");
            assert_eq!(items.get(key).unwrap(), *value, "{key}");
        }
        let mut each = HashMap::new();
        let in_flight = rng.random_range(1..20);
        let found = |key: &String, value: Option<&[u8]>| {
            assert!(each.insert(key.clone(), value.map(<[u8]>::to_vec)).is_none(), "{key} came twice");
        };
        items.get_each(&keys, in_flight, found).unwrap();
        assert_eq!(each, keys.iter().cloned().zip(values).collect());
        let scanned: HashMap<_, _> = items.iter().map(Result::unwrap).collect();
        assert_eq!(scanned, model);
        let mut cursor = 0;
        let mut paged = HashMap::new();
        loop {
            let (found, next) = items.scan(cursor, 100).unwrap();
            for (key, value) in found {
                assert!(paged.insert(key, value).is_none(), "an item was returned twice");
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(paged, model);
        if round == 3 {
            db.compact().unwrap();
            let stats = db.stats();
            let (last, above) = stats.levels.split_last().unwrap();
            assert!(above.iter().all(|level| level.items == 0), "{above:?}");
            assert_eq!(last.items as usize, model.len());
            assert_eq!(last.runs, 1);
        }
        assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
        drop(items);
        db.close().unwrap();
    }
    assert!(occupied.iter().all(|&occupied| occupied), "{occupied:?}");
}

fn levels_of(plan: &Plan) -> usize {
    match plan.clone().executed() {
        Plan::Levels(LevelsPlan { levels, .. }) => levels.len(),
        Plan::Chained(_) => 0,
    }
}

#[test]
fn a_million_puts_of_one_key_keep_one_item() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..1_000_000u32 {
        items.insert("key", number.to_le_bytes()).unwrap();
    }
    assert_eq!(items.get("key").unwrap().unwrap(), 999_999u32.to_le_bytes());
    assert!(items.approximate_len() <= 3);
    db.compact().unwrap();
    assert_eq!(items.get("key").unwrap().unwrap(), 999_999u32.to_le_bytes());
    assert_eq!(items.approximate_len(), 1);
}

#[test]
fn concurrent_updates_of_few_keys_lose_none() {
    let directory = tempfile::tempdir().unwrap();
    let db =
        Db::builder(directory.path()).plan(small_plan()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let items = items.clone();
            scope.spawn(move || {
                for number in 0..5000u64 {
                    let key = ((number + thread) % 7).to_le_bytes();
                    items
                        .update(key, |before| {
                            let count =
                                before.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                            Update::Insert((count + 1).to_le_bytes().to_vec())
                        })
                        .unwrap();
                    // Meanwhile, other keys push the counters down into the tables.
                    items.insert((1000 + number * 4 + thread).to_le_bytes(), b"x").unwrap();
                }
            });
        }
    });
    let sum: u64 = (0..7u64)
        .map(|key| u64::from_le_bytes(items.get(key.to_le_bytes()).unwrap().unwrap().try_into().unwrap()))
        .sum();
    assert_eq!(sum, 20_000);
}

#[test]
fn clearing_a_keyspace_leaves_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        || Db::builder(directory.path()).plan(small_plan()).durability(Durability::Buffered).open().unwrap();
    let db = open();
    let (kept, cleared) = (db.keyspace("kept").unwrap(), db.keyspace("cleared").unwrap());
    for number in 0..2000u32 {
        kept.insert(number.to_le_bytes(), b"kept").unwrap();
        cleared.insert(number.to_le_bytes(), b"cleared").unwrap();
    }
    cleared.clear().unwrap();
    cleared.insert("new", "value").unwrap();
    let check = |db: &Db| {
        let (kept, cleared) = (db.keyspace("kept").unwrap(), db.keyspace("cleared").unwrap());
        assert_eq!(kept.iter().count(), 2000);
        let left: Vec<_> = cleared.iter().map(Result::unwrap).collect();
        assert_eq!(left, [(b"new".to_vec(), b"value".to_vec())]);
    };
    check(&db);
    drop((kept, cleared));
    db.close().unwrap();
    check(&open());
}
