//! Updates and relocations of large items beside changes that bypass the log: clears, ingests, deleted prefixes. What
//! was read before such a change is never written after it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use alluvium::{Db, Durability, Keyspace, KeyspaceOptions, PrefixRule, Update};

fn open(directory: &tempfile::TempDir) -> Db {
    // A small limit makes small log segments, so that the log advances often.
    let builder = Db::builder(directory.path()).durability(Durability::Buffered);
    builder.memory_bytes_max(8 << 20).open().unwrap()
}

fn number(keyspace: &Keyspace, key: &str) -> i64 {
    keyspace.get(key).unwrap().map_or(0, |bytes| i64::from_le_bytes(bytes.try_into().unwrap()))
}

/// Runs `body` while a thread calls `update` repeatedly.
fn beside(update: impl Fn() + Sync, body: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                update();
            }
        });
        // Also if the body panics.
        let _stop = Stop(&stop);
        body();
    });
}

struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// After each change the counter contains only what was added since the change was called.
fn counts_begin_again(db: &Db, keyspace: &Keyspace, key: &str, rounds: u32, change: impl Fn()) {
    let (begun, acknowledged) = (AtomicI64::new(0), AtomicI64::new(0));
    let increment = || {
        begun.fetch_add(1, Ordering::SeqCst);
        keyspace.increment(key, 1).unwrap();
        acknowledged.fetch_add(1, Ordering::SeqCst);
    };
    beside(increment, || {
        for round in 0..rounds {
            let target = acknowledged.load(Ordering::SeqCst) + 50;
            while acknowledged.load(Ordering::SeqCst) < target {
                std::thread::yield_now();
            }
            let before = acknowledged.load(Ordering::SeqCst);
            change();
            let value = number(keyspace, key);
            let possible = begun.load(Ordering::SeqCst) - before;
            assert!(value <= possible, "round {round}: {value} after the change, {possible} were possible");
        }
    });
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn increments_do_not_survive_a_clear() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let keyspace = db.keyspace("numbers").unwrap();
    counts_begin_again(&db, &keyspace, "n", 100, || keyspace.clear().unwrap());
}

#[test]
fn increments_do_not_survive_an_ended_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let slash = PrefixRule::Delimiter { byte: b'/' };
    let keyspace = db.keyspace_with("numbers", &KeyspaceOptions::semi_sorted(slash)).unwrap();
    let fill = || {
        // More than the number up to which items are removed one by one.
        (0..1500).for_each(|item| keyspace.insert(format!("group/{item}"), [1; 30]).unwrap());
    };
    counts_begin_again(&db, &keyspace, "group/n", 20, || {
        fill();
        db.flush().unwrap();
        keyspace.delete_prefix("group").unwrap();
    });
}

#[test]
fn increments_count_on_from_an_ingest() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let keyspace = db.keyspace("numbers").unwrap();
    let keys: Vec<String> = (0..300).map(|key| format!("k{key}")).collect();
    let begun = AtomicI64::new(0);
    let increment_all = || {
        for key in &keys {
            begun.fetch_add(1, Ordering::SeqCst);
            keyspace.increment(key, 1).unwrap();
        }
    };
    // Each ingest sets all numbers to its base. A number that an increment derived from an earlier one is below it.
    beside(increment_all, || {
        for round in 1..=25_i64 {
            let base = round << 32;
            let mut ingest = keyspace.ingest().unwrap();
            keys.iter().for_each(|key| ingest.insert(key, base.to_le_bytes()).unwrap());
            ingest.finish().unwrap();
            for key in &keys {
                let value = number(&keyspace, key);
                assert!(value >= base, "round {round}: {key} has {value:#x}");
            }
        }
    });
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

/// Overwrites large items until some have been relocated, then calls `change`, whose effect must persist.
fn large_items_stay_changed(change: impl Fn(&Keyspace), is_changed: impl Fn(&Keyspace) -> bool) {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let keyspace = db.keyspace("large").unwrap();
    for round in 0..12_u8 {
        for item in 0..2400_u32 {
            keyspace.insert(format!("k{}", item % 800), vec![round; 4000]).unwrap();
        }
        change(&keyspace);
        assert!(is_changed(&keyspace), "round {round}");
        db.wait_idle().unwrap();
        assert!(is_changed(&keyspace), "round {round}, after the collection of garbage");
    }
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn relocated_items_do_not_come_back_after_a_clear() {
    large_items_stay_changed(
        |keyspace| keyspace.clear().unwrap(),
        |keyspace| keyspace.iter().next().is_none(),
    );
}

#[test]
fn relocated_items_do_not_hide_an_ingest() {
    let key = |item: u32| format!("k{item}");
    large_items_stay_changed(
        |keyspace| {
            let mut ingest = keyspace.ingest().unwrap();
            (0..800).for_each(|item| ingest.insert(key(item), [1; 100]).unwrap());
            ingest.finish().unwrap();
        },
        |keyspace| {
            (0..800).all(|item| keyspace.get(key(item)).unwrap().is_some_and(|value| value.len() == 100))
        },
    );
}

#[test]
fn a_change_may_update_any_other_key() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let keyspace = db.keyspace("nested").unwrap();
    let mut calls = 0;
    let nested = |_: Option<&[u8]>| {
        calls += 1;
        // All stripes that serialize updates, and the key itself once.
        for item in 0..500_u32 {
            keyspace.increment(item.to_le_bytes(), 1).unwrap();
        }
        if calls == 1 {
            keyspace.insert("total", "other").unwrap();
        }
        Update::Insert(b"mine".to_vec())
    };
    let before = keyspace.update("total", nested).unwrap();
    assert_eq!((before.as_deref(), calls), (Some(&b"other"[..]), 2));
    assert_eq!(keyspace.get("total").unwrap().as_deref(), Some(&b"mine"[..]));
    assert_eq!(number_of(&keyspace, 7), 2);
}

fn number_of(keyspace: &Keyspace, key: u32) -> i64 {
    i64::from_le_bytes(keyspace.get(key.to_le_bytes()).unwrap().unwrap().try_into().unwrap())
}

#[test]
fn a_change_is_not_called_again_when_only_the_log_moved_on() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(&directory);
    let keyspace = db.keyspace("slow").unwrap();
    keyspace.insert("key", "before").unwrap();
    let mut calls = 0;
    let slow = |_: Option<&[u8]>| {
        calls += 1;
        // The segment that the witness names is converted.
        (0..3).for_each(|_| {
            keyspace.insert("other", "item").unwrap();
            db.flush().unwrap();
        });
        Update::Insert(b"after".to_vec())
    };
    keyspace.update("key", slow).unwrap();
    assert_eq!(calls, 1);
    assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(&b"after"[..]));
}
