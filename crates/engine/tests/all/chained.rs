//! Keyspaces whose log is the store (SkimpyStash): every operation against a map, across reopenings.

use std::collections::BTreeMap;
use std::path::Path;

use alluvium::{ChainedDirectory, ChainedSpec, Db, Durability, Keyspace, KeyspaceOptions, Plan};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn open(path: &Path) -> Db {
    let builder = Db::builder(path).durability(Durability::Buffered).background(false);
    builder.garbage_bytes_min(8 << 10).open().unwrap()
}

fn options(spec: ChainedSpec) -> KeyspaceOptions {
    KeyspaceOptions::default().with_plan(Plan::Chained(spec))
}

fn specs() -> Vec<ChainedSpec> {
    let mut specs = Vec::new();
    for chain_length_mean in [1.0, 3.0, 10.0, 32.0] {
        for directory in [ChainedDirectory::Base, ChainedDirectory::default()] {
            for pointer_bytes in [4, 5] {
                specs.push(ChainedSpec {
                    directory,
                    pointer_bytes,
                    walk_reads_max: [None, Some(0), Some(2)][specs.len() % 3],
                    ..ChainedSpec::of_length(chain_length_mean)
                });
            }
        }
    }
    specs
}

fn check(keyspace: &Keyspace, model: &BTreeMap<Vec<u8>, Vec<u8>>, keys: u32) {
    for number in 0..keys {
        let key = number.to_le_bytes();
        assert_eq!(keyspace.get(key).unwrap().as_ref(), model.get(&key[..]), "key {number}");
    }
    let all: BTreeMap<Vec<u8>, Vec<u8>> = keyspace.iter().map(Result::unwrap).collect();
    assert!(all == *model, "{} items of {}", all.len(), model.len());
    let keys: Vec<_> = (0..keys).map(u32::to_le_bytes).collect();
    let found = keyspace.multi_get(&keys).unwrap();
    for (key, value) in keys.iter().zip(&found) {
        assert_eq!(value.as_ref(), model.get(&key[..]));
    }
    let mut seen = 0;
    keyspace
        .get_each(&keys, 16, |key, value| {
            assert_eq!(value, model.get(&key[..]).map(|value| &value[..]));
            seen += 1;
        })
        .unwrap();
    assert_eq!(seen, keys.len());
    let (mut paged, mut cursor) = (BTreeMap::new(), 0);
    loop {
        let (page, next) = keyspace.scan(cursor, 100).unwrap();
        paged.extend(page);
        if next == 0 {
            break;
        }
        cursor = next;
    }
    assert!(paged == *model);
}

#[test]
fn a_chained_keyspace_is_a_map() {
    const KEYS: u32 = 3000;
    for (seed, spec) in specs().into_iter().enumerate() {
        let directory = tempfile::tempdir().unwrap();
        let mut rng = StdRng::seed_from_u64(seed as u64);
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for opening in 0..3 {
            let db = open(directory.path());
            let keyspace = db.keyspace_with("k", &options(spec)).unwrap();
            check(&keyspace, &model, KEYS);
            let mut snapshots = Vec::new();
            for step in 0..6000 {
                let key = rng.random_range(0..KEYS).to_le_bytes().to_vec();
                let value = vec![step as u8; rng.random_range(0..200)];
                match rng.random_range(0..20) {
                    0..4 => {
                        keyspace.remove(&key).unwrap();
                        model.remove(&key);
                    }
                    4 => {
                        let mut batch = db.batch();
                        for _ in 0..rng.random_range(1..30) {
                            let key = rng.random_range(0..KEYS).to_le_bytes().to_vec();
                            batch.insert(&keyspace, key.clone(), value.clone());
                            model.insert(key, value.clone());
                        }
                        batch.commit().unwrap();
                    }
                    _ => {
                        keyspace.insert(&key, &value).unwrap();
                        model.insert(key, value);
                    }
                }
                if rng.random_range(0..1500) == 0 {
                    db.flush().unwrap();
                }
                if rng.random_range(0..3000) == 0 {
                    let snapshot = db.snapshot().unwrap();
                    snapshots.push((snapshot.keyspace("k").unwrap(), model.clone()));
                }
                if rng.random_range(0..4000) == 0 {
                    let plan = match rng.random_range(0..3) {
                        0 => Plan::silt(),
                        1 => Plan::leveled(),
                        _ => Plan::Chained(spec),
                    };
                    keyspace.change_plan(&plan).unwrap();
                }
                if rng.random_range(0..200) == 0 {
                    while rng.random_range(0..3) > 0 && db.run_background_job().unwrap() {}
                }
                if rng.random_range(0..3000) == 0 {
                    db.compact().unwrap();
                }
                if rng.random_range(0..3000) == 0 && opening == 1 {
                    keyspace.clear().unwrap();
                    model.clear();
                }
            }
            check(&keyspace, &model, KEYS);
            db.flush().unwrap();
            check(&keyspace, &model, KEYS);
            for (snapshot, model) in &snapshots {
                let all: BTreeMap<Vec<u8>, Vec<u8>> = snapshot.iter().map(Result::unwrap).collect();
                assert!(all == *model);
                for number in 0..KEYS {
                    let key = number.to_le_bytes();
                    assert_eq!(snapshot.get(key).unwrap().as_ref(), model.get(&key[..]), "key {number}");
                }
            }
            drop(snapshots);
            db.wait_idle().unwrap();
            check(&keyspace, &model, KEYS);
            assert!(db.verify().unwrap().problems.is_empty());
        }
    }
}

/// Tables of a keyspace that nobody has used since the opening are not open, and may have what a tombstone hides.
#[test]
fn a_collection_before_the_first_use_keeps_tombstones() {
    let directory = tempfile::tempdir().unwrap();
    {
        let db = open(directory.path());
        let silt = KeyspaceOptions::default().with_plan(Plan::silt());
        let keyspace = db.keyspace_with("k", &silt).unwrap();
        keyspace.insert("gone", "value").unwrap();
        db.flush().unwrap();
        keyspace.change_plan(&Plan::Chained(ChainedSpec::of_length(3.0))).unwrap();
        db.flush().unwrap();
        keyspace.remove("gone").unwrap();
        for round in 0..8_u8 {
            for number in 0..500_u32 {
                keyspace.insert(number.to_le_bytes(), [round; 100]).unwrap();
            }
            db.flush().unwrap();
        }
        assert_eq!(keyspace.get("gone").unwrap(), None);
        db.close().unwrap();
    }
    let db = open(directory.path());
    while db.run_background_job().unwrap() {}
    let stats = db.stats();
    assert!(stats.chains.segments_collected > 0, "{:?}", stats.chains);
    let keyspace = db.keyspace("k").unwrap();
    assert_eq!(keyspace.get("gone").unwrap(), None);
}

/// Reads of a get of each key, on average.
fn reads_per_get(db: &Db, keyspace: &Keyspace, keys: u32) -> f64 {
    let before = db.stats().traffic.page_reads;
    for number in 0..keys {
        assert_eq!(keyspace.get(number.to_le_bytes()).unwrap(), Some(vec![number as u8; 48]));
    }
    (db.stats().traffic.page_reads - before) as f64 / f64::from(keys)
}

#[test]
fn chains_that_were_written_anew_take_few_reads() {
    const KEYS: u32 = 40_000;
    for walk_reads_max in [None, Some(1)] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).durability(Durability::Buffered).background(false);
        let db = builder.row_cache_bytes_max(0).expected_items(KEYS.into());
        let db = db.open().unwrap();
        let spec = ChainedSpec { walk_reads_max, ..ChainedSpec::of_length(10.0) };
        let keyspace = db.keyspace_with("k", &options(spec)).unwrap();
        for number in 0..KEYS {
            keyspace.insert(number.to_le_bytes(), vec![number as u8; 48]).unwrap();
        }
        db.flush().unwrap();
        let before = reads_per_get(&db, &keyspace, KEYS);
        assert!(before > 4.0, "{before}");
        match walk_reads_max {
            None => db.compact().unwrap(),
            // Gets find all chains in turn.
            Some(_) => {
                for number in 0..KEYS {
                    keyspace.get(number.to_le_bytes()).unwrap();
                    while db.run_background_job().unwrap() {}
                }
            }
        }
        db.flush().unwrap();
        let after = reads_per_get(&db, &keyspace, KEYS);
        assert!(after < 0.6 * before, "{walk_reads_max:?}: {before} before, {after} after");
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn users_get_chains_wherever_they_name_a_plan() {
    let directory = tempfile::tempdir().unwrap();
    let chained = Plan::skimpystash();
    let own = KeyspaceOptions::default().with_plan(chained.clone());
    let db = Db::open(directory.path()).unwrap();
    for (name, keyspace) in [("own", db.keyspace_with("own", &own)), ("changed", db.keyspace("changed"))] {
        let keyspace = keyspace.unwrap();
        keyspace.insert("key", name).unwrap();
        keyspace.change_plan(&chained).unwrap();
        assert_eq!(keyspace.plan(), chained);
        assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(name.as_bytes()));
    }
    db.change_plan(chained.clone()).unwrap();
    assert_eq!(db.keyspace("later").unwrap().plan(), chained);
    db.close().unwrap();
    let given = Db::builder(directory.path().join("given")).plan(chained.clone()).open().unwrap();
    assert_eq!(given.keyspace("k").unwrap().plan(), chained);
    let opened = Db::open(directory.path()).unwrap();
    assert_eq!(opened.keyspace("own").unwrap().get("key").unwrap().as_deref(), Some(&b"own"[..]));
}
