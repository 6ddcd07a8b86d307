//! What `close` promises: the directory is free at once, whatever handles still exist, and these return `Closed`.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::{
    Db, Durability, Environment, Error, Health, KeyspaceOptions, LevelsPlan, Metadata, Plan, PrefixRule,
    Update,
};
use alluvium_io::{SimulatedClock, SimulatedStorage};

fn assert_closed<T>(what: &str, outcome: Result<T, Error>) {
    match outcome {
        Err(Error::Closed) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what} succeeded"),
    }
}

fn fill(db: &Db) {
    let options = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' }).with_listed_prefixes();
    let (items, files) = (db.keyspace("items").unwrap(), db.keyspace_with("files", &options).unwrap());
    for number in 0..500_u32 {
        items.insert(number.to_le_bytes(), [7; 100]).unwrap();
        files.insert(format!("{}/{number}", number % 10), [8; 100]).unwrap();
    }
    items.insert("large", vec![9; 300_000]).unwrap();
    db.compact().unwrap();
    items.insert("young", "value").unwrap();
}

/// Every kind of handle of a database, used after it was closed and opened again.
#[test]
fn every_handle_answers_closed_and_the_directory_is_free() {
    let directory = tempfile::tempdir().unwrap();
    for read_only in [false, true] {
        let path = directory.path();
        if !read_only {
            let db = Db::open(path).unwrap();
            fill(&db);
            db.close().unwrap();
        }
        let open = |path: &Path| match read_only {
            true => Db::open_read_only(path),
            false => Db::open(path),
        };
        let db = open(path).unwrap();
        let (other, items, files) =
            (db.clone(), db.keyspace("items").unwrap(), db.keyspace("files").unwrap());
        let snapshot = db.snapshot().unwrap();
        let old = snapshot.keyspace("items").unwrap();
        let old_files = snapshot.keyspace("files").unwrap();
        let (mut iter, mut begun, mut prefix) = (items.iter(), items.iter(), files.scan_prefix("3").unwrap());
        begun.next().unwrap().unwrap();
        let mut names = files.prefixes().unwrap();
        let mut stream = items.get_reader("large").unwrap().unwrap();
        let ingest = if read_only { None } else { Some(items.ingest().unwrap()) };
        let mut batch = db.batch();
        batch.insert(&items, "a", "b");
        let empty = db.batch();
        db.close().unwrap();
        let again = Db::open(path).unwrap();
        let kept = again.keyspace("items").unwrap();
        // Obsolete files are removed, even if such handles still refer to them.
        again.compact().unwrap();

        assert_closed("get", items.get("young"));
        assert_closed("contains_key", items.contains_key("young"));
        assert_closed("multi_get", items.multi_get(&["young", "large"]));
        assert_closed("get_each", items.get_each(["young"], 4, |_, _| {}));
        assert_closed("get_with_version", items.get_with_version("young"));
        assert_closed("get_reader", items.get_reader("large"));
        assert_closed("insert", items.insert("a", "b"));
        assert_closed("insert a large one", items.insert("a", vec![0; 100_000]));
        assert_closed("insert_reader", items.insert_reader("a", 3, &b"abc"[..], Metadata::default()));
        assert_closed("remove", items.remove("young"));
        assert_closed("update", items.update("young", |_| Update::Remove));
        assert_closed("increment", items.increment("n", 1));
        assert_closed("clear", items.clear());
        assert_closed("delete_prefix", files.delete_prefix("3"));
        assert_closed("scan", items.scan(0, 10));
        assert_closed("scan_prefix", files.scan_prefix("3").and_then(|mut items| items.next().unwrap()));
        assert_closed("prefixes", files.prefixes().map(drop));
        assert_closed("iter", items.iter().next().unwrap());
        assert_closed("ingest", items.ingest().map(drop));
        assert_closed("an iterator", iter.next().unwrap());
        assert!(iter.next().is_none());
        assert_closed("an iterator under way", begun.next().unwrap());
        assert_closed("a scan of a prefix", prefix.next().unwrap());
        assert_closed("a listing", names.next().unwrap());
        assert!(stream.read(&mut [0; 10]).is_err());
        assert_closed("a snapshot", old.get("young"));
        assert_closed("a snapshot's multi_get", old.multi_get(&["young"]));
        assert_closed("a snapshot's iterator", old.iter().next().unwrap());
        assert_closed("a snapshot's prefixes", old_files.prefixes().map(drop));
        assert_closed("a batch", batch.commit());
        assert_closed("an empty batch", empty.commit());
        assert_closed("a transaction", other.transaction(|transaction| transaction.get(&items, "young")));
        if let Some(mut ingest) = ingest {
            assert_closed("an ingest", ingest.insert("a", "b"));
            assert_closed("its end", ingest.finish().map(drop));
        }
        assert_closed("keyspace", other.keyspace("items"));
        assert_closed("drop_keyspace", other.drop_keyspace("items"));
        assert_closed("snapshot", other.snapshot());
        assert_closed("checkpoint", other.checkpoint(path.join("checkpoint")).map(drop));
        assert_closed("verify", other.verify().map(drop));
        assert_closed("persist", other.persist());
        assert_closed("flush", other.flush());
        assert_closed("compact", other.compact());
        assert_closed("wait_idle", other.wait_idle());
        assert_closed("change_plan", other.change_plan(Plan::tiered()));
        assert_closed("resume", other.resume());
        assert_eq!(other.health(), Health::Closed);
        let _ = (other.stats(), other.keyspace_names(), items.approximate_len());
        other.close().unwrap();
        drop((items, files, snapshot, old, old_files, iter, begun, prefix, names, stream));

        assert_eq!(kept.get("young").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(kept.get("large").unwrap().unwrap(), vec![9; 300_000]);
        assert_eq!(kept.iter().count(), 502);
        kept.insert("more", "value").unwrap();
        assert!(again.verify().unwrap().problems.is_empty());
        kept.remove("more").unwrap();
    }
}

#[test]
fn the_last_handle_gives_the_directory_back_too() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    let items = db.keyspace("items").unwrap();
    items.insert("key", "value").unwrap();
    let iter = items.iter();
    drop((db, items));
    // An iterator keeps nothing open.
    let db = Db::open(directory.path()).unwrap();
    assert_eq!(db.keyspace("items").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    drop(iter);
}

fn small_plan() -> Plan {
    let LevelsPlan { mut sharding, mut log, levels } = LevelsPlan::silt();
    sharding.log_entries_per_shard = 1_000;
    log.segment_bytes_max = 256 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

/// At a byte per second the merges here would take days.
#[test]
fn a_limit_of_the_merges_rate_holds_no_close_up() {
    let directory = tempfile::tempdir().unwrap();
    let builder = Db::builder(directory.path()).plan(small_plan()).durability(Durability::Buffered);
    let db = builder.background_bytes_per_s_max(1).open().unwrap();
    let items = db.keyspace("items").unwrap();
    let mut number = 0_u32;
    // Until a merge is in progress, and waits.
    while db.stats().merge_pressure < 1.2 {
        items.insert(number.to_le_bytes(), [3; 200]).unwrap();
        number += 1;
    }
    db.close().unwrap();
    let named = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("table-")).count()
    };
    let left = named(directory.path());
    let db = Db::builder(directory.path()).plan(small_plan()).background(false).open().unwrap();
    assert_eq!(named(directory.path()), left, "the merge that was given up left a table");
    let items = db.keyspace("items").unwrap();
    for number in 0..number {
        assert!(items.contains_key(number.to_le_bytes()).unwrap());
    }
}

/// Everything acknowledged before `close` returned is present afterwards, and so is everything for which a writer got
/// `Ok` later.
#[test]
fn writers_beside_a_close_are_told_the_truth() {
    for round in 0..20 {
        let storage = SimulatedStorage::new(round);
        let open = |storage: &SimulatedStorage, background| {
            let environment = Environment::over(Arc::new(storage.clone()));
            let environment = Environment { clock: Arc::new(SimulatedClock::default()), ..environment };
            let builder = Db::builder("closing").plan(small_plan()).durability(Durability::Buffered);
            builder.background(background).environment(environment).open().unwrap()
        };
        let db = open(&storage, true);
        let begun = AtomicBool::new(false);
        let written: Vec<u32> = std::thread::scope(|scope| {
            let write = |writer: u32| {
                let items = db.keyspace("items").unwrap();
                let begun = &begun;
                move || {
                    let mut count = 0;
                    let error = loop {
                        match items.insert([writer.to_le_bytes(), u32::to_le_bytes(count)].concat(), [7; 300])
                        {
                            Ok(()) => count += 1,
                            Err(error) => break error,
                        }
                        begun.fetch_or(count > 500, Ordering::Relaxed);
                    };
                    assert!(matches!(error, Error::Closed), "{error}");
                    count
                }
            };
            let writers: Vec<_> = (0..3).map(|writer| scope.spawn(write(writer))).collect();
            while !begun.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            db.clone().close().unwrap();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect()
        });
        storage.crash();
        let db = open(&storage.reopen(), false);
        let items = db.keyspace("items").unwrap();
        for (writer, count) in (0..).zip(written) {
            for number in 0..count {
                let key = [u32::to_le_bytes(writer), number.to_le_bytes()].concat();
                assert!(
                    items.contains_key(&key).unwrap(),
                    "round {round}: {number} of {count} of writer {writer}"
                );
            }
        }
    }
}
