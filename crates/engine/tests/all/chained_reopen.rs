//! Openings of keyspaces whose log is the store: by the saved directory or from all records, with the same answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{
    ChainStats, ChainedDirectory, ChainedSpec, Db, Durability, Environment, Error, Keyspace, KeyspaceOptions,
    ManifestRepair, Plan, RepairOptions, RepairReport, ReplayReason, repair_in,
};
use alluvium_io::SimulatedStorage;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Contents = BTreeMap<String, Vec<u8>>;
type Items = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u32 = 800;

fn environment(storage: &SimulatedStorage) -> Environment {
    Environment { random_seed: 7, ..Environment::over(Arc::new(storage.clone())) }
}

fn try_open(storage: &SimulatedStorage, durability: Durability) -> Result<Db, Error> {
    Db::builder("simulated")
        .environment(environment(storage))
        .durability(durability)
        .background(false)
        .directory_log_factor(0)
        .garbage_bytes_min(0)
        .memory_bytes_max(4 << 20)
        .open()
}

fn open(storage: &SimulatedStorage) -> Db {
    try_open(storage, Durability::Buffered).unwrap()
}

fn spec(length: f64, is_base: bool) -> ChainedSpec {
    let directory = if is_base { ChainedDirectory::Base } else { ChainedDirectory::default() };
    ChainedSpec { directory, ..ChainedSpec::of_length(length) }
}

fn keyspace(db: &Db, spec: ChainedSpec) -> Keyspace {
    db.keyspace_with("k", &KeyspaceOptions::default().with_plan(Plan::Chained(spec))).unwrap()
}

/// Random changes, many freezes and conversions, and some garbage collection.
fn change(db: &Db, keyspace: &Keyspace, rng: &mut StdRng, items: &mut Items, steps: u32) {
    for _ in 0..steps {
        let key = rng.random_range(0..KEYS).to_le_bytes().to_vec();
        if rng.random_range(0..6) == 0 {
            keyspace.remove(&key).unwrap();
            items.remove(&key);
        } else {
            let value = vec![rng.random(); rng.random_range(0..900)];
            keyspace.insert(&key, &value).unwrap();
            items.insert(key, value);
        }
        match rng.random_range(0..600) {
            0 => db.flush().unwrap(),
            1..20 => drop(db.run_background_job().unwrap()),
            _ => {}
        }
    }
}

fn all_of(keyspace: &Keyspace) -> Items {
    let all: Items = keyspace.iter().map(Result::unwrap).collect();
    for number in 0..KEYS {
        let key = number.to_le_bytes();
        assert_eq!(keyspace.get(key).unwrap().as_ref(), all.get(&key[..]), "key {number}");
    }
    all
}

fn directories(contents: &Contents) -> Vec<String> {
    contents.keys().filter(|name| name.starts_with("directory-")).cloned().collect()
}

/// What an opening of these files finds, and how it came to the chains.
fn found(contents: &Contents, spec: ChainedSpec) -> (Items, ChainStats) {
    let storage = SimulatedStorage::from_contents(3, contents);
    let db = open(&storage);
    let stats = db.stats().chains;
    let items = all_of(&keyspace(&db, spec));
    assert!(db.verify().unwrap().problems.is_empty());
    (items, stats)
}

#[test]
fn an_opening_with_a_directory_answers_as_one_without() {
    let (mut used, mut replayed) = (0, 0);
    for seed in 0..24 {
        let mut rng = StdRng::seed_from_u64(seed);
        let spec = spec([1.0, 3.0, 10.0][seed as usize % 3], seed % 2 == 0);
        let mut storage = SimulatedStorage::new(seed);
        for _ in 0..3 {
            let db = open(&storage);
            let keyspace = keyspace(&db, spec);
            let mut items = all_of(&keyspace);
            let steps = rng.random_range(100..3000);
            change(&db, &keyspace, &mut rng, &mut items, steps);
            let is_crash = rng.random();
            if is_crash {
                if rng.random() {
                    db.persist().unwrap();
                } else {
                    // Some of the last changes are lost.
                    items.clear();
                }
                storage.crash();
            }
            drop((keyspace, db));
            storage = storage.reopen();
            let contents = storage.contents();
            let (with, stats) = found(&contents, spec);
            let mut bare = contents.clone();
            bare.retain(|name, _| !name.starts_with("directory-"));
            let (without, bare_stats) = found(&bare, spec);
            assert!(with == without, "seed {seed}: {} items and {}", with.len(), without.len());
            assert!(is_crash || !items.is_empty() || with.is_empty());
            if !items.is_empty() {
                assert!(with == items, "seed {seed}: {} items instead of {}", with.len(), items.len());
            }
            if directories(&contents).is_empty() {
                continue;
            }
            assert!(stats.replays.is_empty(), "seed {seed}: {stats:?}");
            assert_eq!(bare_stats.replays[0].reason, ReplayReason::Missing);
            assert!(bare_stats.segments_replayed as usize == stats.segments);
            assert!(is_crash || stats.segments_replayed == 0, "seed {seed}: {stats:?}");
            used += stats.segments - stats.segments_replayed as usize;
            replayed += stats.segments_replayed;
        }
    }
    // Both kinds of segments were met.
    assert!(used > 50 && replayed > 0, "{used} and {replayed}");
}

/// A closed database with segments that stay, and what it has.
fn closed(spec: ChainedSpec) -> (Contents, Items) {
    let storage = SimulatedStorage::new(5);
    let mut items = Items::new();
    let db = open(&storage);
    let own = keyspace(&db, spec);
    change(&db, &own, &mut StdRng::seed_from_u64(5), &mut items, 4000);
    drop(own);
    db.close().unwrap();
    let contents = storage.contents();
    assert_eq!(directories(&contents).len(), 1);
    (contents, items)
}

#[test]
fn a_damaged_directory_is_made_anew_from_the_log() {
    for is_base in [false, true] {
        let spec = spec(3.0, is_base);
        let (contents, items) = closed(spec);
        let [name] = &directories(&contents)[..] else { panic!("one directory") };
        let len = contents[name].len();
        for at in [0, 9, 14, 20, 30, 45, 60, len / 2, len - 5000] {
            let mut damaged = contents.clone();
            damaged.get_mut(name).unwrap()[at] ^= 0x41;
            let (found, stats) = found(&damaged, spec);
            assert!(found == items);
            assert_eq!(stats.replays[0].reason, ReplayReason::Damaged, "byte {at}");
        }
        let mut cut = contents.clone();
        cut.get_mut(name).unwrap().truncate(len / 3);
        assert_eq!(found(&cut, spec).1.replays[0].reason, ReplayReason::Damaged);
        // What replaces it is another file, and the old one is gone.
        let storage = SimulatedStorage::from_contents(3, &cut);
        let db = open(&storage);
        db.compact().unwrap();
        db.close().unwrap();
        let after = storage.contents();
        assert!(directories(&after).len() == 1 && directories(&after)[0] != *name);
        assert!(found(&after, spec).1.replays.is_empty());
    }
}

#[test]
fn a_directory_goes_with_its_chains() {
    let spec = spec(3.0, false);
    let (contents, items) = closed(spec);
    let storage = SimulatedStorage::from_contents(3, &contents);
    let db = open(&storage);
    let own = keyspace(&db, spec);
    let snapshot = db.snapshot().unwrap();
    own.clear().unwrap();
    assert!(directories(&storage.contents()).is_empty());
    let kept: Items = snapshot.keyspace("k").unwrap().iter().map(Result::unwrap).collect();
    assert!(kept == items);

    let storage = SimulatedStorage::from_contents(3, &contents);
    let db = open(&storage);
    keyspace(&db, spec);
    assert!(db.drop_keyspace("k").unwrap());
    assert!(directories(&storage.contents()).is_empty());

    let storage = SimulatedStorage::from_contents(3, &contents);
    let db = open(&storage);
    let own = keyspace(&db, spec);
    own.change_plan(&Plan::silt()).unwrap();
    db.compact().unwrap();
    assert!(directories(&storage.contents()).is_empty());
    assert!(all_of(&own) == items);
    drop(own);
    db.close().unwrap();
    assert!(found(&storage.contents(), spec).0 == items);
}

#[test]
fn other_chains_are_made_from_the_log() {
    let (contents, items) = closed(spec(3.0, false));
    let storage = SimulatedStorage::from_contents(3, &contents);
    let db = open(&storage);
    // No background work, so the segments stay, and the next opening knows only the new plan.
    keyspace(&db, spec(3.0, false)).change_plan(&Plan::Chained(spec(10.0, false))).unwrap();
    storage.crash();
    drop(db);
    let (found, stats) = found(&storage.reopen().contents(), spec(10.0, false));
    assert!(found == items);
    assert_eq!(stats.replays[0].reason, ReplayReason::OtherPlan);
}

#[test]
fn a_copy_has_a_directory_of_its_own() {
    let spec = spec(3.0, false);
    let (contents, _) = closed(spec);
    let storage = SimulatedStorage::from_contents(3, &contents);
    let db = open(&storage);
    let own = keyspace(&db, spec);
    let mut items = all_of(&own);
    let mut rng = StdRng::seed_from_u64(6);
    change(&db, &own, &mut rng, &mut items, 500);
    let copy = SimulatedStorage::new(9);
    db.checkpoint_into(Arc::new(copy.clone())).unwrap();
    assert_eq!(directories(&copy.contents()).len(), 1);
    let (found, stats) = found(&copy.contents(), spec);
    assert!(found == items && stats.replays.is_empty() && stats.segments_replayed == 0, "{stats:?}");
    // The two go different ways.
    change(&db, &own, &mut rng, &mut items.clone(), 500);
    let copied = open(&copy);
    assert!(all_of(&keyspace(&copied, spec)) == items);
}

#[test]
fn reading_alone_uses_the_directory() {
    let spec = spec(3.0, false);
    let (contents, items) = closed(spec);
    let storage = SimulatedStorage::from_contents(3, &contents);
    let builder = Db::builder("simulated").environment(environment(&storage)).background(false);
    let db = builder.read_only(true).open().unwrap();
    let stats = db.stats().chains;
    assert!(stats.segments > 0 && stats.segments_replayed == 0 && stats.replays.is_empty(), "{stats:?}");
    assert!(all_of(&db.keyspace("k").unwrap()) == items);
    db.close().unwrap();
    let changed: Vec<_> =
        storage.contents().into_iter().filter(|file| contents.get(&file.0) != Some(&file.1)).collect();
    assert!(
        changed.iter().all(|(name, _)| name == "LOCK"),
        "{:?}",
        changed.iter().map(|file| &file.0).collect::<Vec<_>>()
    );
}

fn repaired(contents: &Contents) -> (RepairReport, Contents) {
    let storage = SimulatedStorage::from_contents(3, contents);
    let report = repair_in(environment(&storage), &RepairOptions::default()).unwrap();
    (report, storage.contents())
}

#[test]
fn a_repair_leaves_sound_chains_alone() {
    let spec = spec(3.0, false);
    let (contents, items) = closed(spec);
    let (report, after) = repaired(&contents);
    assert!(!report.changed && report.problems.is_empty(), "{report:?}");
    assert!(report.segments > 2, "{report:?}");
    let (found, stats) = found(&after, spec);
    assert!(found == items && stats.replays.is_empty());
}

/// The items of the only keyspace after a repair.
fn items_after(contents: &Contents) -> Items {
    let storage = SimulatedStorage::from_contents(3, contents);
    let db = open(&storage);
    let names = db.keyspace_names();
    let items = all_of(&db.keyspace(&names[0]).unwrap());
    db.compact().unwrap();
    assert!(all_of(&db.keyspace(&names[0]).unwrap()) == items);
    assert!(db.verify().unwrap().problems.is_empty());
    items
}

#[test]
fn a_repair_finds_every_item_without_a_manifest() {
    for is_base in [false, true] {
        let (contents, items) = closed(spec(3.0, is_base));
        let mut bare = contents.clone();
        bare.retain(|name, _| !name.starts_with("manifest-") && name != "CURRENT");
        let (report, after) = repaired(&bare);
        assert_eq!(report.manifest, ManifestRepair::Rebuilt, "{report:?}");
        assert!(items_after(&after) == items);
        let mut bare = contents.clone();
        bare.remove("CURRENT");
        let (report, after) = repaired(&bare);
        assert_eq!(report.manifest, ManifestRepair::Restored, "{report:?}");
        assert!(items_after(&after) == items);
    }
}

#[test]
fn a_repair_finds_chains_beside_younger_tables() {
    let storage = SimulatedStorage::new(5);
    let db = open(&storage);
    let own = keyspace(&db, spec(3.0, false));
    let other = db.keyspace_with("other", &KeyspaceOptions::default().with_plan(Plan::silt())).unwrap();
    let mut items = Items::new();
    // Tables below the chains, chains, and tables of another keyspace that are younger.
    own.change_plan(&Plan::silt()).unwrap();
    change(&db, &own, &mut StdRng::seed_from_u64(5), &mut items, 1500);
    db.compact().unwrap();
    own.change_plan(&Plan::Chained(spec(3.0, false))).unwrap();
    change(&db, &own, &mut StdRng::seed_from_u64(6), &mut items, 4000);
    other.insert("a", "b").unwrap();
    db.flush().unwrap();
    db.compact().unwrap();
    drop((own, other));
    db.close().unwrap();
    let mut contents = storage.contents();
    contents.retain(|name, _| !name.starts_with("manifest-") && name != "CURRENT");
    let (report, after) = repaired(&contents);
    assert_eq!(report.manifest, ManifestRepair::Rebuilt, "{report:?}");
    assert!(items_after(&after) == items, "{report:?}");
}

#[test]
fn a_repair_keeps_what_is_sound_of_a_damaged_segment() {
    let (contents, items) = closed(spec(3.0, false));
    let logs: Vec<String> = contents.keys().filter(|name| name.starts_with("log-")).cloned().collect();
    for log in logs {
        let mut damaged = contents.clone();
        let bytes = damaged.get_mut(&log).unwrap();
        if bytes.len() < 9000 || bytes[5000..5100].iter().all(|&byte| byte == 0) {
            continue;
        }
        bytes[5000] ^= 0x11;
        let (report, after) = repaired(&damaged);
        if report.log_gaps == 0 {
            continue;
        }
        let found = items_after(&after);
        // One record is lost, and may uncover an older one.
        let differs = |key: &&Vec<u8>| found.get(*key) != items.get(*key);
        let keys: std::collections::BTreeSet<_> = found.keys().chain(items.keys()).collect();
        assert!(keys.into_iter().filter(differs).count() <= 1, "{log}: {report:?}");
        let mut missing = contents.clone();
        missing.remove(&log);
        let (report, after) = repaired(&missing);
        assert!(report.segments_lost >= 1 || !report.changed, "{log}: {report:?}");
        items_after(&after);
    }
}

#[test]
fn directories_count_towards_the_memory_limit() {
    let storage = SimulatedStorage::new(5);
    let db = open(&storage);
    let unused = db.stats().memory_limit.index_bytes_max.unwrap();
    let own = keyspace(&db, spec(1.0, false));
    let mut items = Items::new();
    change(&db, &own, &mut StdRng::seed_from_u64(5), &mut items, 1000);
    let stats = db.stats();
    assert!(stats.chains.directory_memory > 0 && stats.memory.log_index >= stats.chains.directory_memory);
    let left = stats.memory_limit.index_bytes_max.unwrap();
    assert!(unused - left >= stats.chains.directory_memory / 2, "{unused} and {left}: {stats:?}");
    db.set_memory_bytes_max(None).unwrap();
    assert_eq!(db.stats().memory_limit.index_bytes_max, None);
    db.set_memory_bytes_max(Some(4 << 20)).unwrap();
    assert!(db.stats().memory_limit.index_bytes_max.unwrap() < unused);
}
