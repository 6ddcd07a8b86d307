//! A damaged filter or index costs reads but no answers.

use std::collections::BTreeMap;

use crate::damage::{Contents, KEYSPACES, Sample, key, plan};
use alluvium::{Db, Error, LevelsPlan, Plan};
use alluvium_io::SimulatedStorage;
use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};

/// Offset and length of each filter and index of a table file, from its directory.
fn blocks(table: &[u8]) -> Vec<(usize, usize)> {
    let number = |at: usize, len: usize| {
        table[at..at + len].iter().rev().fold(0usize, |number, &byte| number << 8 | usize::from(byte))
    };
    let trailer = table.len() - 64;
    let directory = number(trailer, 8);
    let (count, entry_bytes) = (number(directory, 4), number(directory + 4, 4));
    let entries = (0..count).map(|entry| directory + 8 + entry * entry_bytes);
    let handles = entries.flat_map(|entry| [entry + 112, entry + 136]);
    handles.map(|at| (number(at, 8), number(at + 8, 8))).filter(|block| block.1 > 0).collect()
}

/// Sorted tables found by a trie, with a static filter.
fn plan_of_tries() -> Plan {
    let Plan::Levels(LevelsPlan { sharding, log, .. }) = plan() else { unreachable!() };
    let level = |runs_max| LevelSpec {
        growth: Growth::Tiering { runs_max, share: Growth::ANY_SHARE },
        table: TableLayout::Sorted,
        filter: Filter::Static { bits: 9 },
        index: Index::Trie,
    };
    Plan::Levels(LevelsPlan { sharding, log, levels: vec![level(3), level(3), level(8)] })
}

/// Whether any damage was detected: a block may belong to a section that is no longer used.
fn check(sample: &Sample, contents: &Contents, what: &str) -> bool {
    let db = sample.open(contents).unwrap_or_else(|error| panic!("{what}: {error}"));
    for name in KEYSPACES {
        let keyspace = db.keyspace(name).unwrap();
        for number in 0..120 {
            let found = keyspace.get(key(number)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found.as_ref(), sample.items.get(&(name.to_owned(), key(number))), "{what}: {number}");
            assert_eq!(keyspace.get(format!("absent {number}")).unwrap(), None, "{what}");
        }
        let found: Result<BTreeMap<_, _>, Error> = keyspace.iter().collect();
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        let expected = sample.items.keys().filter(|item| item.0 == name).map(|item| &item.1);
        assert!(found.keys().eq(expected), "{what}");
    }
    let is_noticed = !db.verify().unwrap().problems.is_empty();
    assert!(is_noticed || db.stats().memory_limit.damaged_blocks == 0, "{what}: verify finds nothing");
    // Merges read the pages, so their results are sound.
    db.compact().unwrap_or_else(|error| panic!("{what}: {error}"));
    let problems = db.verify().unwrap().problems;
    assert!(problems.is_empty(), "{what}: {problems:?}");
    is_noticed
}

#[test]
fn gets_go_around_damaged_filters_and_indexes() {
    for sample in [Sample::new(), Sample::of(plan_of_tries())] {
        let (mut noticed, mut changed) = (0, 0);
        let tables = sample.contents.iter().filter(|(name, _)| name.starts_with("table-"));
        for (name, bytes) in tables {
            for (offset, len) in blocks(bytes) {
                for at in [offset, offset + len / 2, offset + len - 1] {
                    let mut contents = sample.contents.clone();
                    contents.get_mut(name).unwrap()[at] ^= 0x20;
                    noticed += usize::from(check(&sample, &contents, &format!("{name} at {at}")));
                    changed += 1;
                }
            }
        }
        assert!(noticed * 2 > changed, "{noticed} of {changed}");
    }
}

#[test]
fn what_was_gone_around_is_counted() {
    let sample = Sample::of(plan_of_tries());
    let (name, bytes) = sample.contents.iter().find(|(name, _)| name.starts_with("table-")).unwrap();
    let (offset, _) = blocks(bytes)[0];
    let mut contents = sample.contents.clone();
    contents.get_mut(name).unwrap()[offset + 30] ^= 1;
    let storage = SimulatedStorage::from_contents(4, &contents);
    let db: Db = sample.open_in(sample.environment_over(storage)).unwrap();
    let fruit = db.keyspace("fruit").unwrap();
    for number in 0..120 {
        fruit.get(key(number)).unwrap();
    }
    assert!(db.stats().memory_limit.damaged_blocks > 0);
}
