//! `Db::deferred`: writes that do not wait, and one `Db::commit` for all of them.

use crate::failing::{number, open};
use alluvium::{Condition, Durability, Error, Keyspace, KeyspaceOptions, Metadata, PrefixRule, Update};
use alluvium_io::{FaultPlan, SimulatedStorage};

const ITEMS: u32 = 64;

fn value(item: u32) -> Vec<u8> {
    vec![item as u8; if item.is_multiple_of(9) { 3_000 } else { 50 }]
}

#[test]
fn one_sync_makes_all_of_them_durable() {
    let storage = SimulatedStorage::new(5);
    let (db, waiting) = open(&storage, Durability::Sync);
    let deferred = db.deferred();
    let items = deferred.keyspace("items").unwrap();
    let syncs = db.stats().traffic.log_syncs;
    for item in 0..ITEMS {
        items.insert(number(item), value(item)).unwrap();
    }
    assert_eq!(items.increment("counter", 2).unwrap(), 2);
    items.append("log", "line").unwrap();
    items.remove(number(7)).unwrap();
    let mut batch = deferred.batch();
    batch.insert(&items, "one", "of a batch");
    batch.require(&items, number(7), Condition::Absent);
    batch.commit().unwrap();
    let sum = deferred.transaction(|transaction| {
        let (value, metadata) = transaction.get_with_metadata(&items, "one")?.expect("just written");
        transaction.insert_with(&items, "two", value, Metadata { flags: 3, ..metadata });
        transaction.version(&items, "two")
    });
    assert_eq!(sum.unwrap(), items.get_with_version("two").unwrap().version);
    assert_eq!(db.stats().traffic.log_syncs, syncs);
    deferred.commit().unwrap();
    assert_eq!(db.stats().traffic.log_syncs, syncs + 1);
    storage.crash();
    drop((waiting, items, deferred, db));
    let (_db, items) = open(&storage.reopen(), Durability::Sync);
    for item in 0..ITEMS {
        assert_eq!(items.get(number(item)).unwrap(), (item != 7).then(|| value(item)));
    }
    assert_eq!(items.get("counter").unwrap().unwrap(), 2_i64.to_le_bytes());
    assert_eq!(items.get("log").unwrap().unwrap(), b"line");
    let (two, metadata) = items.get_with_metadata("two").unwrap().unwrap();
    assert_eq!((&two[..], metadata.flags), (&b"of a batch"[..], 3));
}

#[test]
fn one_write_makes_them_survive_the_process() {
    let storage = SimulatedStorage::new(6);
    let (db, waiting) = open(&storage, Durability::Process);
    let deferred = db.deferred();
    let items = deferred.keyspace("items").unwrap();
    (0..ITEMS).for_each(|item| items.insert(number(item), value(item)).unwrap());
    deferred.commit().unwrap();
    assert_eq!(db.stats().write_waits.system.count, 1);
    storage.kill();
    drop((waiting, items, deferred, db));
    let (_db, items) = open(&storage.reopen(), Durability::Process);
    assert!((0..ITEMS).all(|item| items.get(number(item)).unwrap() == Some(value(item))));
}

#[test]
fn what_was_not_committed_may_be_lost_from_the_end_only() {
    for seed in 0..20 {
        let storage = SimulatedStorage::new(seed);
        let (db, waiting) = open(&storage, Durability::Sync);
        let deferred = db.deferred();
        let items = deferred.keyspace("items").unwrap();
        (0..ITEMS).for_each(|item| items.insert(number(item), [1; 900]).unwrap());
        // Another handle's write makes all earlier ones durable.
        waiting.insert("waits", "1").unwrap();
        (ITEMS..2 * ITEMS).for_each(|item| items.insert(number(item), [1; 900]).unwrap());
        storage.crash();
        drop((waiting, items, deferred, db));
        let (_db, items) = open(&storage.reopen(), Durability::Sync);
        let found: Vec<bool> = (0..2 * ITEMS).map(|item| items.contains_key(number(item)).unwrap()).collect();
        assert!(found[..ITEMS as usize].iter().all(|&is_there| is_there), "seed {seed}");
        assert!(found.is_sorted_by(|left, right| left >= right), "seed {seed}: {found:?}");
    }
}

#[test]
fn a_commit_whose_sync_fails_says_so() {
    let storage = SimulatedStorage::new(8);
    let (db, _waiting) = open(&storage, Durability::Sync);
    let deferred = db.deferred();
    let items = deferred.keyspace("items").unwrap();
    items.insert("key", "value").unwrap();
    storage.set_faults(FaultPlan { fail_sync: Some(0), ..FaultPlan::default() });
    deferred.commit().unwrap_err();
    assert!(matches!(items.insert("later", "value"), Err(Error::Failed { .. })));
    assert!(matches!(deferred.commit(), Err(Error::Failed { .. })));
}

/// A caller that waits found another one's removal, which alone would be lost, and had nothing to do itself.
#[test]
fn what_a_write_saw_is_durable_when_it_returns() {
    type Write = fn(&Keyspace);
    let writes: [(&str, Write); 4] = [
        ("delete_prefix", |items| items.delete_prefix("prefix").unwrap()),
        ("update", |items| assert_eq!(items.update("prefix/key", |_| Update::Keep).unwrap(), None)),
        ("compare_and_swap", |items| {
            assert!(!items.compare_and_swap("prefix/key", Some(b"1"), Some(b"2")).unwrap());
        }),
        ("append_if", |items| assert_eq!(items.append_if("prefix/key", "2", |_| false).unwrap(), None)),
    ];
    for (name, write) in writes {
        let storage = SimulatedStorage::new(9);
        let (db, waiting) = open(&storage, Durability::Sync);
        let by_slash = KeyspaceOptions::semi_sorted(PrefixRule::Delimiter { byte: b'/' });
        let items = db.keyspace_with("by prefix", &by_slash).unwrap();
        items.insert("prefix/key", "1").unwrap();
        let deferred = db.deferred().keyspace_with("by prefix", &by_slash).unwrap();
        deferred.delete_prefix("prefix").unwrap();
        write(&items);
        storage.crash();
        drop((waiting, items, deferred, db));
        let (db, _) = open(&storage.reopen(), Durability::Sync);
        let items = db.keyspace_with("by prefix", &by_slash).unwrap();
        assert_eq!(items.get("prefix/key").unwrap(), None, "{name}");
    }
}
