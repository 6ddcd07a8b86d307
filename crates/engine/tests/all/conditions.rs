//! Batches with conditions: all or nothing, and the result names the condition that failed.

use std::collections::BTreeMap;

use alluvium::{Condition, Db, Durability, Error, ItemVersion, Keyspace, Metadata};
use proptest::prelude::*;

fn open(path: &std::path::Path) -> (Db, Keyspace) {
    let db = Db::builder(path).plan(crate::damage::plan()).durability(Durability::Buffered).open().unwrap();
    let items = db.keyspace("items").unwrap();
    (db, items)
}

/// Number of the failed condition, if one failed.
fn outcome(result: Result<(), Error>) -> Option<usize> {
    match result {
        Ok(()) => None,
        Err(Error::ConditionFailed(failed)) => {
            assert_eq!(failed.keyspace, "items");
            Some(failed.number)
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_condition_holds_when_it_should_wherever_the_item_lies() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path());
    let large = vec![7; 5_000];
    for place in ["log", "run", "sorted run"] {
        items.insert("small", place).unwrap();
        items.insert("large", &large).unwrap();
        items.remove("absent").unwrap();
        match place {
            "log" => {}
            "run" => db.flush().unwrap(),
            _ => db.compact().unwrap(),
        }
        let version = |key: &str| items.get_with_version(key).unwrap().version;
        let (small, absent) = (version("small"), version("absent"));
        assert_eq!(absent, version("never there"));
        let cases = [
            ("absent", Condition::Absent, true),
            ("small", Condition::Absent, false),
            ("small", Condition::Present, true),
            ("large", Condition::Present, true),
            ("absent", Condition::Present, false),
            ("small", Condition::Value(place.into()), true),
            ("small", Condition::Value(b"other".to_vec()), false),
            ("absent", Condition::Value(Vec::new()), false),
            ("large", Condition::Value(large.clone()), true),
            ("large", Condition::Value(large[1..].to_vec()), false),
            ("small", Condition::Unchanged(small), true),
            ("small", Condition::Unchanged(absent), false),
            ("absent", Condition::Unchanged(ItemVersion::from_bytes(absent.to_bytes())), true),
            ("large", Condition::Unchanged(version("large")), true),
        ];
        for (key, condition, holds) in cases {
            let mut batch = db.batch();
            batch.require(&items, "small", Condition::Present);
            batch.require(&items, key, condition.clone());
            batch.insert(&items, "written", "yes");
            batch.remove(&items, "other");
            let expected = if holds { None } else { Some(1) };
            assert_eq!(outcome(batch.commit()), expected, "{place}: {key} {condition:?}");
            assert_eq!(items.contains_key("written").unwrap(), holds);
            items.remove("written").unwrap();
        }
    }
}

#[test]
fn flags_and_expiry_are_parts_of_a_version() {
    let directory = tempfile::tempdir().unwrap();
    let (_db, items) = open(directory.path());
    let mut versions = Vec::new();
    for (flags, expires_at_ms) in [(0, None), (1, None), (0, Some(u64::MAX)), (0, Some(u64::MAX - 1))] {
        items.insert_with("key", "value", Metadata { flags, expires_at_ms }).unwrap();
        versions.push(items.get_with_version("key").unwrap().version);
    }
    versions.push(items.get_with_version("absent").unwrap().version);
    let distinct: std::collections::HashSet<_> = versions.iter().map(|version| version.to_bytes()).collect();
    assert_eq!(distinct.len(), versions.len());
    items.insert("key", "value").unwrap();
    assert_eq!(items.get_with_version("key").unwrap().version, versions[0]);
}

/// Threads pass a token around by conditional batches: the thread that has it counts, in a key of its own.
#[test]
fn of_those_who_want_the_same_at_the_same_time_one_gets_it() {
    let directory = tempfile::tempdir().unwrap();
    let (db, items) = open(directory.path());
    let (threads, rounds) = (3u64, 400u64);
    items.insert("round", 0_u64.to_le_bytes()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (db, items) = (&db, &items);
            scope.spawn(move || {
                for round in 0..rounds {
                    let mut batch = db.batch();
                    batch.require(items, "round", Condition::Value(round.to_le_bytes().to_vec()));
                    batch.require(items, [b"winner-", &round.to_le_bytes()[..]].concat(), Condition::Absent);
                    batch.insert(items, "round", (round + 1).to_le_bytes());
                    batch.insert(items, [b"winner-", &round.to_le_bytes()[..]].concat(), [thread as u8]);
                    // A loser saw a later round, or the winner.
                    let _ = outcome(batch.commit());
                }
            });
        }
        scope.spawn(|| (0..10).for_each(|_| db.flush().unwrap()));
    });
    assert_eq!(items.get("round").unwrap(), Some(rounds.to_le_bytes().to_vec()));
    for round in 0..rounds {
        assert!(items.contains_key([b"winner-", &round.to_le_bytes()[..]].concat()).unwrap());
    }
}

#[derive(Debug, Clone)]
enum Demand {
    Absent,
    Present,
    Value(u8),
    Unchanged,
}

fn demand() -> impl Strategy<Value = Demand> {
    prop_oneof![
        Just(Demand::Absent),
        Just(Demand::Present),
        (0u8..3).prop_map(Demand::Value),
        Just(Demand::Unchanged)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The reference is a map; versions are those of the second to last step in which the key was read.
    #[test]
    fn batches_with_conditions_agree_with_a_map(
        steps in prop::collection::vec(
            (prop::collection::vec((0u8..6, demand()), 0..4), prop::collection::vec((0u8..6, 0u8..4), 0..4)),
            1..60,
        ),
    ) {
        let directory = tempfile::tempdir().unwrap();
        let (db, items) = open(directory.path());
        let mut model: BTreeMap<u8, u8> = BTreeMap::new();
        let mut seen: BTreeMap<u8, (Option<u8>, ItemVersion)> = BTreeMap::new();
        for (number, (demands, writes)) in steps.into_iter().enumerate() {
            let mut batch = db.batch();
            let mut expected = None;
            for (place, (key, demand)) in demands.into_iter().enumerate() {
                let now = model.get(&key).copied();
                let (condition, holds) = match demand {
                    Demand::Absent => (Condition::Absent, now.is_none()),
                    Demand::Present => (Condition::Present, now.is_some()),
                    Demand::Value(value) => (Condition::Value(vec![value]), now == Some(value)),
                    Demand::Unchanged => match seen.get(&key) {
                        Some((then, version)) => (Condition::Unchanged(*version), *then == now),
                        None => continue,
                    },
                };
                batch.require(&items, [key], condition);
                expected = expected.or((!holds).then_some(place));
            }
            let expected_any = expected.is_some();
            for &(key, value) in &writes {
                if value == 3 { batch.remove(&items, [key]) } else { batch.insert(&items, [key], [value]) }
            }
            prop_assert_eq!(outcome(batch.commit()).is_some(), expected_any);
            if !expected_any {
                for (key, value) in writes {
                    if value == 3 { model.remove(&key); } else { model.insert(key, value); }
                }
            }
            let key = (number % 6) as u8;
            let alluvium::Versioned { item, version } = items.get_with_version([key]).unwrap();
            prop_assert_eq!(item.map(|(value, _)| value[0]), model.get(&key).copied());
            seen.insert(key, (model.get(&key).copied(), version));
            if number % 7 == 0 {
                db.flush().unwrap();
            }
        }
        for key in 0..6u8 {
            prop_assert_eq!(items.get([key]).unwrap().map(|value| value[0]), model.get(&key).copied());
        }
    }
}
