//! Many keyspaces with few descriptors. Runs in a process of its own, whose limit it lowers.

use alluvium::{Db, Durability, Plan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const KEYSPACES: usize = 200;
const DESCRIPTORS: u64 = 100;

fn open(directory: &std::path::Path) -> Db {
    Db::builder(directory).plan(Plan::silt()).durability(Durability::Buffered).open().unwrap()
}

#[test]
fn twice_as_many_tables_as_descriptors_are_read_written_and_compacted() {
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), ..limits }).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let name = |number: usize| format!("keyspace-{number}");
    for round in 0..3 {
        let db = open(directory.path());
        let keyspaces: Vec<_> = (0..KEYSPACES).map(|number| db.keyspace(&name(number)).unwrap()).collect();
        for (number, items) in keyspaces.iter().enumerate() {
            for earlier in 0..round {
                assert_eq!(items.get([earlier]).unwrap(), Some(vec![number as u8, earlier]));
            }
            items.insert([round], [number as u8, round]).unwrap();
            // Large items are stored in files of their own kind.
            items.insert("large", vec![number as u8; 30_000]).unwrap();
        }
        db.compact().unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
        let tables = std::fs::read_dir(directory.path()).unwrap();
        let tables = tables
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("table-"));
        assert!(tables.count() >= KEYSPACES);
        for (number, items) in keyspaces.iter().enumerate() {
            assert_eq!(items.get("large").unwrap(), Some(vec![number as u8; 30_000]));
            assert_eq!(items.multi_get(&[[round], [9]]).unwrap(), [Some(vec![number as u8, round]), None]);
        }
        drop(keyspaces);
        db.close().unwrap();
    }
}
