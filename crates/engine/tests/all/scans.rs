//! Scans by cursor compared with a map: abandoned, repeated and interleaved ones, beside writes, merges and reopenings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::{Db, Durability, Environment, Keyspace, KeyspaceOptions, LevelsPlan, Plan, PrefixRule};
use alluvium_io::{SimulatedClock, SimulatedStorage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SLASH: PrefixRule = PrefixRule::Delimiter { byte: b'/' };

type Key = Vec<u8>;

/// A named plan with small sizes, so that a few thousand items go through all levels.
fn small(name: &str) -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, levels }) = Plan::named(name).unwrap() else {
        unreachable!()
    };
    sharding.log_entries_per_shard = 128;
    sharding.items_per_shard = 512;
    log.segment_bytes_max = 128 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

fn scan_all(items: &Keyspace, count: usize) -> BTreeSet<Key> {
    let (mut seen, mut cursor) = (BTreeSet::new(), 0);
    loop {
        let (page, next) = items.scan(cursor, count).unwrap();
        seen.extend(page.into_iter().map(|(key, _)| key));
        if next == 0 {
            return seen;
        }
        cursor = next;
    }
}

/// A scan in progress, with what it must and may return.
struct Scan {
    cursor: u64,
    seen: BTreeSet<Key>,
    /// Present at all times since it started.
    throughout: BTreeSet<Key>,
    /// Present at some time since it started.
    ever: BTreeSet<Key>,
}

#[derive(Default)]
struct Model {
    items: BTreeMap<Key, Vec<u8>>,
    scans: Vec<Scan>,
}

impl Model {
    fn insert(&mut self, key: Key, value: Vec<u8>) {
        for scan in &mut self.scans {
            scan.ever.insert(key.clone());
        }
        self.items.insert(key, value);
    }

    fn remove(&mut self, key: &Key) {
        for scan in &mut self.scans {
            scan.throughout.remove(key);
        }
        self.items.remove(key);
    }

    fn remove_if(&mut self, is_removed: impl Fn(&Key) -> bool) {
        let removed: Vec<Key> = self.items.keys().filter(|key| is_removed(key)).cloned().collect();
        removed.iter().for_each(|key| self.remove(key));
    }

    fn begin_scan(&mut self) {
        let keys: BTreeSet<Key> = self.items.keys().cloned().collect();
        self.scans.push(Scan { cursor: 0, seen: BTreeSet::new(), throughout: keys.clone(), ever: keys });
    }

    /// Reads the next page of a scan.
    fn go_on(&mut self, items: &Keyspace, at: usize, count: usize) {
        let scan = &mut self.scans[at];
        let (page, next) = items.scan(scan.cursor, count).unwrap();
        for (key, value) in page {
            assert_eq!(self.items.get(&key), Some(&value), "each call returns what is there when it is made");
            assert!(scan.seen.insert(key.clone()), "{key:?} came twice");
        }
        scan.cursor = next;
        if next == 0 {
            let scan = self.scans.swap_remove(at);
            let missing: Vec<_> = scan.throughout.difference(&scan.seen).collect();
            let ghosts: Vec<_> = scan.seen.difference(&scan.ever).collect();
            assert!(missing.is_empty() && ghosts.is_empty(), "missing {missing:?}, ghosts {ghosts:?}");
        }
    }
}

fn scans_agree_with_a_map(name: &str, is_semi_sorted: bool, seed: u64) {
    let storage = SimulatedStorage::new(seed);
    let open = || {
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: seed,
            ..Environment::over(Arc::new(storage.clone()))
        };
        let builder = Db::builder("scans").background(false).durability(Durability::Buffered);
        let builder = builder.blob_sizes(64 << 10, 1 << 20, 16 << 10);
        let db = builder.table_sizes(4 << 10, 32 << 10).environment(environment).open().unwrap();
        let options =
            if is_semi_sorted { KeyspaceOptions::semi_sorted(SLASH) } else { KeyspaceOptions::default() };
        let items = db.keyspace_with("items", &options.with_plan(small(name))).unwrap();
        (db, items)
    };
    let mut rng = StdRng::seed_from_u64(seed);
    let key = |rng: &mut StdRng| {
        // Half of the keys have one prefix, the rest few each.
        let prefix = if rng.random() { 0 } else { rng.random_range(0..60u32) };
        format!("dir{prefix}/{}", rng.random_range(0..if prefix == 0 { 1200 } else { 20 })).into_bytes()
    };
    let mut model = Model::default();
    let (mut db, mut items) = open();
    for step in 0..12_000u32 {
        match rng.random_range(0..1000) {
            0..620 => {
                let len = if rng.random_range(0..200) == 0 { 3000 } else { rng.random_range(0..150) };
                let (key, value) = (key(&mut rng), vec![step as u8; len]);
                items.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
            620..760 => {
                let key = key(&mut rng);
                items.remove(&key).unwrap();
                model.remove(&key);
            }
            760..770 => model.begin_scan(),
            770..980 => {
                if !model.scans.is_empty() {
                    let at = rng.random_range(0..model.scans.len());
                    let count = if rng.random_range(0..4) == 0 { 300 } else { rng.random_range(0..40) };
                    model.go_on(&items, at, count);
                }
            }
            980..984 => {
                if !model.scans.is_empty() {
                    model.scans.swap_remove(rng.random_range(0..model.scans.len()));
                }
            }
            984..987 => db.flush().unwrap(),
            987..994 => drop(db.run_background_job().unwrap()),
            994 => db.compact().unwrap(),
            995 => db.set_merge_bytes_max(1 << rng.random_range(10..24)),
            996 => {
                let mut ingest = items.ingest().unwrap();
                for _ in 0..rng.random_range(0..200) {
                    let (key, value) = (key(&mut rng), vec![step as u8; rng.random_range(0..100)]);
                    ingest.insert(&key, &value).unwrap();
                    model.insert(key, value);
                }
                ingest.finish().unwrap();
            }
            997 if is_semi_sorted => {
                let prefix = format!("dir{}", rng.random_range(0..5));
                items.delete_prefix(&prefix).unwrap();
                let start = format!("{prefix}/").into_bytes();
                model.remove_if(|key| key.starts_with(&start));
            }
            998 if rng.random_range(0..4) == 0 => {
                items.clear().unwrap();
                model.remove_if(|_| true);
            }
            999 => {
                drop(items);
                db.close().unwrap();
                (db, items) = open();
            }
            _ => {
                // A reader takes one page and abandons the scan.
                items.scan(0, rng.random_range(1..20)).unwrap();
            }
        }
    }
    while let Some(last) = model.scans.len().checked_sub(1) {
        model.go_on(&items, last, 50);
    }
    let present: BTreeSet<Key> = model.items.keys().cloned().collect();
    assert_eq!(scan_all(&items, 10), present);
    db.compact().unwrap();
    assert_eq!(scan_all(&items, 7), present);
}

#[test]
fn scans_of_hash_runs_agree_with_a_map() {
    scans_agree_with_a_map("silt", false, 1);
    scans_agree_with_a_map("silt-tiering", false, 2);
}

#[test]
fn scans_of_deep_levels_agree_with_a_map() {
    scans_agree_with_a_map("silt-deep", false, 3);
    scans_agree_with_a_map("tiered", false, 4);
}

#[test]
fn scans_of_sorted_and_bucketed_levels_agree_with_a_map() {
    scans_agree_with_a_map("leveled", false, 5);
    scans_agree_with_a_map("lsm-trie", false, 6);
}

#[test]
fn scans_of_semi_sorted_keyspaces_agree_with_a_map() {
    scans_agree_with_a_map("semi-sorted", true, 7);
    scans_agree_with_a_map("slimdb", true, 8);
}

/// The cursor of a first page is used again later, when other items are present.
#[test]
fn an_abandoned_page_does_not_go_on_in_another_scan() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    (0..1000u32).for_each(|number| items.insert(number.to_le_bytes(), "old").unwrap());
    let first: BTreeSet<Key> = items.iter().take(11).map(|item| item.unwrap().0).collect();
    items.scan(0, 10).unwrap();
    for number in 0..1000u32 {
        if !first.contains(&number.to_le_bytes()[..]) {
            items.remove(number.to_le_bytes()).unwrap();
        }
    }
    (5000..6000u32).for_each(|number| items.insert(number.to_le_bytes(), "new").unwrap());
    // The first page stays as it was, so that its cursor is the same.
    let order: Vec<Key> = items.iter().map(|item| item.unwrap().0).collect();
    let last = order.iter().rposition(|key| first.contains(key)).unwrap();
    for key in order[..last].iter().filter(|key| !first.contains(*key)) {
        items.remove(key).unwrap();
    }
    let present: BTreeSet<Key> = items.iter().map(|item| item.unwrap().0).collect();
    assert_eq!(scan_all(&items, 10), present);
}

/// Bytes that the files of a directory take.
#[cfg(unix)]
fn disk_bytes(path: &std::path::Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

#[cfg(unix)]
#[test]
fn abandoned_scans_pin_no_files_and_iterators_say_what_they_pin() {
    const ITEMS: u32 = 40_000;
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path()).background(false).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let fill = |value: u8| {
        (0..ITEMS).for_each(|number| items.insert(number.to_le_bytes(), [value; 200]).unwrap());
        db.compact().unwrap();
        db.wait_idle().unwrap();
    };
    fill(7);
    let used = disk_bytes(directory.path());
    for count in 10..14 {
        items.scan(0, count).unwrap();
    }
    let gathered = db.stats().memory.scans;
    assert!(gathered > 0 && gathered < 1 << 20, "{gathered}");
    fill(8);
    assert!(disk_bytes(directory.path()) < used * 5 / 4);
    assert_eq!(db.stats().iterators.iterators, 0);

    let iterator = items.iter();
    let listed = db.stats().iterators;
    assert_eq!((listed.iterators, listed.disk), (1, 0));
    fill(9);
    let pinned = db.stats().iterators;
    assert!(pinned.disk > u64::from(ITEMS) * 200, "{pinned:?}");
    // What was added to the log that was active when it started may be returned.
    let values = iterator.map(|item| item.unwrap().1);
    assert_eq!(values.filter(|value| *value == [8; 200] || *value == [9; 200]).count(), ITEMS as usize);
    db.wait_idle().unwrap();
    assert_eq!(db.stats().iterators, alluvium::IteratorStats::default());
    assert!(disk_bytes(directory.path()) < used * 5 / 4);
}

#[test]
fn what_scans_gather_is_bounded_and_goes_with_the_keyspace() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).background(false).durability(Durability::Buffered);
    let db = builder.memory_bytes_max(8 << 20).open().unwrap();
    for name in ["one", "two", "three"] {
        let items = db.keyspace(name).unwrap();
        (0..20_000u32).for_each(|number| items.insert(number.to_le_bytes(), [1; 100]).unwrap());
        db.flush().unwrap();
        for count in 1..60 {
            items.scan(u64::from(count as u32) << 58, count).unwrap();
            assert!(db.stats().memory.scans <= (8 << 20) / 32);
        }
        assert_eq!(scan_all(&items, 1000).len(), 20_000);
        items.scan(0, 10).unwrap();
    }
    assert!(db.stats().memory.scans > 0);
    for name in ["one", "two", "three"] {
        db.drop_keyspace(name).unwrap();
    }
    assert_eq!(db.stats().memory.scans, 0);
}

/// Keys that are present all the time are returned and keys that are never present are not, whatever other threads do.
fn scans_beside_threads(options: &KeyspaceOptions) {
    const STABLE: u32 = 600;
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    let db = builder.table_sizes(4 << 10, 64 << 10).open().unwrap();
    let items = db.keyspace_with("items", options).unwrap();
    let stable = |number: u32| format!("dir{}/stable{number}", number % 7).into_bytes();
    let keys: BTreeSet<Key> = (0..STABLE).map(stable).collect();
    keys.iter().for_each(|key| items.insert(key, "0").unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (items, is_over) = (&items, &is_over);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let number = rng.random_range(0..4 * STABLE);
                    match rng.random_range(0..3) {
                        0 => items.insert(stable(number % STABLE), [1; 60]).unwrap(),
                        1 => items.insert(format!("dir{}/other{number}", number % 7), [2; 60]).unwrap(),
                        _ => items.remove(format!("dir{}/other{number}", number % 7)).unwrap(),
                    }
                }
            });
        }
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                db.flush().unwrap();
                db.compact().unwrap();
            }
        });
        let scanners: Vec<_> = [3, 20, 500]
            .into_iter()
            .map(|count| {
                let (items, keys) = (&items, &keys);
                scope.spawn(move || {
                    for _ in 0..2 {
                        items.scan(0, count).unwrap();
                        let seen = scan_all(items, count);
                        assert!(keys.is_subset(&seen), "{} are missing", keys.difference(&seen).count());
                        assert!(seen.iter().all(|key| key.starts_with(b"dir")));
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = scanners.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        is_over.store(true, Ordering::Relaxed);
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
}

#[test]
fn scans_beside_threads_return_what_stays() {
    scans_beside_threads(&KeyspaceOptions::default().with_plan(small("silt")));
    scans_beside_threads(&KeyspaceOptions::semi_sorted(SLASH).with_plan(small("semi-sorted")));
}

#[test]
fn pages_of_a_prefix_have_all_its_items_and_no_others() {
    for name in ["semi-sorted", "slimdb"] {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path()).durability(Durability::Buffered);
        let db = builder.table_sizes(4 << 10, 64 << 10).open().unwrap();
        let options = KeyspaceOptions { plan: Some(small(name)), ..KeyspaceOptions::semi_sorted(SLASH) };
        let items = db.keyspace_with("items", &options).unwrap();
        let mut rng = StdRng::seed_from_u64(9);
        let mut groups: BTreeMap<u32, BTreeSet<Key>> = BTreeMap::new();
        for number in 0..6_000_u32 {
            let group = if rng.random_bool(0.5) { 0 } else { rng.random_range(1..40) };
            let key = format!("{group}/{number}").into_bytes();
            items.insert(&key, number.to_le_bytes()).unwrap();
            groups.entry(group).or_default().insert(key);
        }
        for (group, keys) in &groups {
            for count in [7, 100_000] {
                let (mut seen, mut cursor) = (BTreeSet::new(), 0);
                loop {
                    let (page, next) = items.scan_prefix_from(group.to_string(), cursor, count).unwrap();
                    seen.extend(page.into_iter().map(|(key, _)| key));
                    if next == 0 {
                        break;
                    }
                    assert!(next > cursor && next < 1 << 24);
                    cursor = next;
                }
                assert_eq!(&seen, keys, "{name}, group {group}");
            }
        }
        assert_eq!(items.scan_prefix_from("none", 0, 10).unwrap(), (Vec::new(), 0));
        let hashed = db.keyspace("hashed").unwrap();
        assert!(hashed.scan_prefix_from("0", 0, 10).is_err());
    }
}
