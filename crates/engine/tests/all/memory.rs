//! The memory limit: right answers however little memory filters and indexes may take, and one read per get once they
//! are back.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::{Db, Durability, Environment, Error, Keyspace, LevelsPlan, Plan};
use alluvium_io::{FileStorage, IoOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const ITEMS: u32 = 20_000;

/// Small sizes, so that a few thousand items have many runs and tables.
fn small_plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 512;
    sharding.items_per_shard = 8192;
    log.segment_bytes_max = 128 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn key(number: u32) -> [u8; 8] {
    u64::from(number).to_be_bytes()
}

fn value(number: u32, version: u32) -> Vec<u8> {
    format!("{number}/{version}/{}", "x".repeat(number as usize % 150)).into_bytes()
}

fn open(directory: &std::path::Path) -> (Db, Keyspace) {
    let builder = Db::builder(directory).plan(small_plan()).durability(Durability::Buffered);
    // The same hashes, and so the same tables, in each run.
    let storage = FileStorage::create(directory, IoOptions::default()).unwrap();
    let environment = Environment { random_seed: 11, ..Environment::over(Arc::new(storage)) };
    // Rows would answer lookups that should show what filters and indexes are good for.
    let builder = builder.background(false).row_cache_bytes_max(0).table_sizes(1 << 20, 32 << 20);
    let db = builder.environment(environment).open().unwrap();
    let items = db.keyspace("items").unwrap();
    (db, items)
}

/// A database of [`ITEMS`] items in sorted tables and hash runs, nothing in the log.
fn loaded(directory: &std::path::Path) -> (Db, Keyspace) {
    let (db, items) = open(directory);
    for number in 0..ITEMS {
        items.insert(key(number), value(number, 0)).unwrap();
        while number % 500 == 0 && db.run_background_job().unwrap() {}
    }
    db.flush().unwrap();
    (db, items)
}

/// Gets every item and as many absent keys; returns page reads and index reads per get.
fn check_all(db: &Db, items: &Keyspace, version: impl Fn(u32) -> u32) -> (f64, f64) {
    let before = db.stats();
    for number in 0..ITEMS {
        assert_eq!(items.get(key(number)).unwrap(), Some(value(number, version(number))), "{number}");
    }
    let after = db.stats();
    for number in ITEMS..ITEMS + 2_000 {
        assert_eq!(items.get(key(number)).unwrap(), None);
    }
    let reads = |from: u64, to: u64| (to - from) as f64 / f64::from(ITEMS);
    (
        reads(before.traffic.page_reads, after.traffic.page_reads),
        reads(before.memory_limit.index_reads, after.memory_limit.index_reads),
    )
}

#[test]
fn a_tenth_of_the_index_memory_costs_reads_and_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = loaded(directory.path());
    let (page_reads, index_reads) = check_all(&db, &items, |_| 0);
    assert!(page_reads <= 1.01 && index_reads == 0.0, "{page_reads} and {index_reads} reads a get");
    let memory = db.stats().memory;
    assert!(memory.filters > 0 && memory.indexes > 0);

    db.set_index_bytes_max((memory.filters + memory.indexes) / 10);
    let (page_reads, index_reads) = check_all(&db, &items, |_| 0);
    assert!(index_reads >= 1.0 && page_reads <= 1.01, "{page_reads} and {index_reads} reads a get");
    let stats = db.stats();
    assert_eq!(stats.memory.filters, 0);
    assert!(stats.memory_limit.sections_without_filter > 0 && stats.memory_limit.sections_without_index > 0);
    assert!(stats.memory_limit.filters_dropped > 0 && stats.memory_limit.indexes_dropped > 0);
    assert_eq!(items.iter().map(Result::unwrap).count(), ITEMS as usize);
    let keys: Vec<_> = (0..ITEMS + 100).step_by(7).map(key).collect();
    let answers = items.multi_get(&keys).unwrap();
    let expected = |number: u32| (number < ITEMS).then(|| value(number, 0));
    assert!(answers.into_iter().eq((0..ITEMS + 100).step_by(7).map(expected)));
    assert!(db.verify().unwrap().problems.is_empty());

    db.set_index_bytes_max(u64::MAX);
    check_all(&db, &items, |_| 0);
    let (page_reads, index_reads) = check_all(&db, &items, |_| 0);
    assert!(page_reads <= 1.01 && index_reads == 0.0, "{page_reads} and {index_reads} reads a get");
    let restored = db.stats();
    let lacking =
        restored.memory_limit.sections_without_filter + restored.memory_limit.sections_without_index;
    assert_eq!((lacking, restored.memory), (0, memory));
}

#[test]
fn what_saves_the_fewest_reads_a_byte_goes_first() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = loaded(directory.path());
    check_all(&db, &items, |_| 0);
    let memory = db.stats().memory;
    let mut before = 0.0;
    for share in [0.8, 0.6, 0.4, 0.2, 0.0] {
        let bytes = (memory.filters + memory.indexes) as f64 * share;
        db.set_index_bytes_max(memory.tables + bytes as u64);
        let (page_reads, index_reads) = check_all(&db, &items, |_| 0);
        // A get without room for a small filter reads the filter, not the pages that it would reject.
        assert!(page_reads <= 1.01, "{page_reads} page reads a get");
        assert!(index_reads >= before, "{index_reads} reads of indexes a get, {before} with more memory");
        before = index_reads;
        let stats = db.stats();
        assert_eq!(stats.memory_limit.unfiltered_pages, 0);
        assert!(stats.memory.filters + stats.memory.indexes <= bytes as u64);
    }
    let whole = before;
    db.set_index_bytes_max(memory.tables + (memory.filters + memory.indexes) / 2);
    let (_, index_reads) = check_all(&db, &items, |_| 0);
    let (_, again) = check_all(&db, &items, |_| 0);
    assert!(index_reads < 0.5 * whole, "half the memory saves {} of {whole} reads", whole - index_reads);
    assert!((again - index_reads).abs() < 0.01 * whole, "nothing comes and goes: {index_reads}, {again}");
}

#[test]
fn random_writes_agree_with_a_map_while_the_bound_changes() {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = StdRng::seed_from_u64(3);
    let mut model: HashMap<u32, u32> = HashMap::new();
    for round in 0..3 {
        let (db, items) = open(directory.path());
        for step in 0..6_000 {
            let number = rng.random_range(0..2_000);
            match rng.random_range(0..10) {
                0..=5 => {
                    items.insert(key(number), value(number, step)).unwrap();
                    model.insert(number, step);
                }
                6 => {
                    items.remove(key(number)).unwrap();
                    model.remove(&number);
                }
                _ => {
                    let expected = model.get(&number).map(|&version| value(number, version));
                    assert_eq!(items.get(key(number)).unwrap(), expected, "round {round}, step {step}");
                }
            }
            if step % 100 == 0 {
                db.set_index_bytes_max(*[0, 3_000, 20_000, u64::MAX].get(rng.random_range(0..4)).unwrap());
                db.set_merge_bytes_max(*[1_000, 50_000, u64::MAX].get(rng.random_range(0..3)).unwrap());
                db.run_background_job().unwrap();
            }
        }
        let mut found: Vec<_> = items.iter().map(Result::unwrap).collect();
        let mut expected: Vec<_> =
            model.iter().map(|(&number, &version)| (key(number).to_vec(), value(number, version))).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        drop(items);
        db.close().unwrap();
    }
}

#[test]
fn readers_go_on_while_indexes_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = loaded(directory.path());
    let memory = db.stats().memory;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (items, is_done) = (&items, &is_done);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(thread);
                while !is_done.load(Ordering::Relaxed) {
                    let number = rng.random_range(0..ITEMS + ITEMS / 4);
                    let found = items.get(key(number)).unwrap();
                    assert!(match number {
                        0..ITEMS =>
                            found.is_some_and(|found| found.starts_with(format!("{number}/").as_bytes())),
                        _ => found.is_none(),
                    });
                }
            });
        }
        let mut rng = StdRng::seed_from_u64(9);
        for round in 0..300 {
            let whole = memory.filters + memory.indexes;
            db.set_index_bytes_max(*[0, whole / 10, whole / 2, u64::MAX].get(round % 4).unwrap());
            for _ in 0..20 {
                let number = rng.random_range(0..ITEMS);
                items.insert(key(number), value(number, round as u32)).unwrap();
            }
            db.run_background_job().unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_held_stays_under_the_limit_during_a_load() {
    const LIMIT: u64 = 4 << 20;
    let directory = tempfile::tempdir().unwrap();
    // In one shard, so that the young items of a merge do not fit in memory together.
    let LevelsPlan { mut sharding, log, levels } = LevelsPlan::silt();
    sharding.shards_max = 1;
    let db = Db::builder(directory.path())
        .plan(Plan::Levels(LevelsPlan { sharding, log, levels }))
        .durability(Durability::Buffered)
        .memory_bytes_max(LIMIT)
        .open()
        .unwrap();
    assert_eq!(db.stats().memory_limit.limit_bytes, Some(LIMIT));
    let items = db.keyspace("items").unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak = 0;
            while !is_done.load(Ordering::Relaxed) {
                let memory = db.stats().memory;
                assert!(memory.total() <= LIMIT, "{memory:?}");
                peak = memory.total().max(peak);
                std::thread::yield_now();
            }
            peak
        });
        for number in 0..100_000 {
            items.insert(key(number), value(number, 0)).unwrap();
        }
        db.wait_idle().unwrap();
        is_done.store(true, Ordering::Relaxed);
        assert!(sampler.join().unwrap() > LIMIT / 16);
    });
    let stats = db.stats();
    assert!(stats.traffic.merges > 0, "{stats:?}");
    for number in (0..100_000).step_by(13) {
        assert_eq!(items.get(key(number)).unwrap(), Some(value(number, 0)));
    }
    // An unlimited log takes more than this limit at once.
    db.set_memory_bytes_max(None).unwrap();
    assert_eq!(db.stats().memory_limit.limit_bytes, None);
    for number in 0..50_000 {
        items.insert(key(number), value(number, 1)).unwrap();
    }
    db.set_memory_bytes_max(Some(LIMIT)).unwrap();
    db.flush().unwrap();
    db.wait_idle().unwrap();
    assert!(db.stats().memory.total() <= LIMIT, "{:?}", db.stats().memory);
    for number in (0..50_000).step_by(7) {
        assert_eq!(items.get(key(number)).unwrap(), Some(value(number, 1)));
    }
}

/// Ingests and large items have no share of their own: filters and indexes give up what they take.
#[test]
fn an_ingest_and_large_items_stay_under_the_limit() {
    const LIMIT: u64 = 4 << 20;
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(Plan::silt()).durability(Durability::Buffered);
    let db = builder.memory_bytes_max(LIMIT).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let large = |number: u32| vec![number as u8; 20_000 * (number as usize + 1)];
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut peak = 0;
            while !is_done.load(Ordering::Relaxed) {
                let memory = db.stats().memory;
                assert!(memory.total() <= LIMIT, "{memory:?}");
                peak = memory.merge_buffer.max(peak);
                std::thread::yield_now();
            }
            peak
        });
        let mut ingest = items.ingest().unwrap();
        for number in 0..100_000 {
            ingest.insert(key(number), value(number, 0)).unwrap();
        }
        for number in 0..50 {
            ingest.insert(key(number), large(number)).unwrap();
        }
        assert!(!ingest.finish().unwrap().logged);
        for number in 50..100 {
            items.insert(key(number), large(number)).unwrap();
        }
        is_done.store(true, Ordering::Relaxed);
        // In parts that fit in an eighth of the limit.
        let peak = sampler.join().unwrap();
        assert!((LIMIT / 32..=LIMIT / 4).contains(&peak), "{peak} bytes");
    });
    // Not one table for each part that fits in memory.
    assert!(db.stats().levels[2].tables <= 16, "{:?}", db.stats().levels);
    for number in 0..100_000 {
        let expected = if number < 100 { large(number) } else { value(number, 0) };
        assert_eq!(items.get(key(number)).unwrap(), Some(expected), "{number}");
    }
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn a_limit_that_is_too_small_is_refused_and_says_the_minimum() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).memory_bytes_max(1 << 20);
    let Err(Error::MemoryLimit { limit, min }) = builder.clone().open() else {
        panic!("1 MiB does not work")
    };
    assert_eq!(limit, 1 << 20);
    let db = builder.memory_bytes_max(min).open().unwrap();
    let refused = db.set_memory_bytes_max(Some(min - 1)).unwrap_err();
    assert!(refused.to_string().contains(&min.to_string()), "{refused}");
    assert_eq!(db.stats().memory_limit.limit_bytes, Some(min));
    drop(db);

    // A limit for the process includes the program itself.
    let builder = Db::builder(directory.path());
    let Err(Error::MemoryLimit { limit: 5_000_000, min: process_min }) =
        builder.clone().process_memory_bytes_max(5_000_000).open()
    else {
        panic!("the program alone takes more than that leaves")
    };
    assert!(process_min > min);
    let db = builder.process_memory_bytes_max(1 << 30).open().unwrap();
    assert!(db.stats().memory_limit.limit_bytes.is_some_and(|limit| limit > 1 << 29 && limit < 1 << 30));
}

/// Converting a log while an iterator is open frees its memory, and what the iterator returns stays right.
#[test]
fn open_iterators_hold_no_log_that_was_converted() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = loaded(directory.path());
    let mut iterators = Vec::new();
    for round in 1..6 {
        for number in (0..2_000).step_by(round) {
            items.insert(key(number), value(number, round as u32)).unwrap();
        }
        let mut iterator = items.iter();
        assert!(iterator.next().is_some());
        iterators.push((round as u32, iterator));
        db.flush().unwrap();
    }
    assert_eq!(db.stats().iterators.iterators, 5);
    assert_eq!(db.stats().iterators.log_memory, 0);
    for (round, iterator) in iterators {
        let mut found = 1;
        for item in iterator {
            let (key, value) = item.unwrap();
            let number = u64::from_be_bytes(key.try_into().unwrap()) as u32;
            let text = String::from_utf8(value).unwrap();
            let version: u32 = text.split('/').nth(1).unwrap().parse().unwrap();
            // The latest version before the iterator started, or one written meanwhile.
            let least = (1..=round).rev().find(|round| number < 2_000 && number.is_multiple_of(*round));
            assert!(version >= least.unwrap_or(0), "{number}: {version} in round {round}");
            found += 1;
        }
        assert_eq!(found, ITEMS, "each item once");
    }
}

#[test]
fn iterators_beyond_the_limit_are_refused_until_others_are_dropped() {
    const LIMIT: u64 = 4 << 20;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).memory_bytes_max(LIMIT).open();
    let db = db.unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..2_000 {
        items.insert(key(number), value(number, 0)).unwrap();
    }
    let mut open = Vec::new();
    let refused = loop {
        let mut iterator = items.iter();
        match iterator.next().unwrap() {
            Ok(_) => open.push(iterator),
            Err(refused) => break refused,
        }
        assert!(open.len() < 1_000, "there is no bound");
        assert!(db.stats().memory.total() <= LIMIT, "{:?}", db.stats().memory);
    };
    assert!(matches!(refused, Error::MemoryBusy { .. }), "{refused}");
    assert!(open.len() >= 20, "{} iterators", open.len());
    // Reads without an iterator continue.
    assert_eq!(items.get(key(7)).unwrap(), Some(value(7, 0)));
    let keys: Vec<_> = (0..500).map(key).collect();
    assert!(items.multi_get(&keys).unwrap().iter().all(Option::is_some));
    items.insert("another", "one").unwrap();
    open.pop();
    assert_eq!(items.iter().map(Result::unwrap).count(), 2_001);
    for iterator in open {
        assert!(iterator.map(Result::unwrap).count() >= 1_999);
    }
    assert_eq!(items.iter().map(Result::unwrap).count(), 2_001);
}
