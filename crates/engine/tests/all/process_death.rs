//! With `Durability::Process` the death of the process takes nothing that was acknowledged.

use crate::failing::{number, open};
use alluvium::Durability;
use alluvium_io::SimulatedStorage;

const ITEMS: u32 = 3_000;

fn value(item: u32) -> Vec<u8> {
    let len = match item {
        0 | 1_700 => 20 << 10, // a record with blocks of its own
        _ if item.is_multiple_of(100) => 3_000,
        _ => 50,
    };
    vec![item as u8; len]
}

#[test]
fn all_that_was_acknowledged_is_found_after_the_process_died() {
    // Some are in sealed segments, some in the active one, some are large.
    for items_written in [1, 101, 900, ITEMS] {
        let storage = SimulatedStorage::new(3);
        let (db, items) = open(&storage, Durability::Process);
        for item in 0..items_written {
            items.insert(number(item), value(item)).unwrap();
        }
        let mut batch = db.batch();
        batch.insert(&items, "one", "of a batch");
        batch.insert(&items, "two", vec![2; 5_000]);
        batch.commit().unwrap();
        let waits = db.stats().write_waits;
        assert_eq!((waits.system.count, waits.sync.count), (u64::from(items_written) + 1, 0));
        storage.kill();
        drop((items, db));
        let (_db, items) = open(&storage.reopen(), Durability::Process);
        for item in 0..items_written {
            assert!(items.get(number(item)).unwrap() == Some(value(item)), "{item} of {items_written}");
        }
        assert_eq!(items.get("two").unwrap(), Some(vec![2; 5_000]));
    }
}

#[test]
fn what_was_made_durable_survives_a_power_cut() {
    let storage = SimulatedStorage::new(4);
    let (db, items) = open(&storage, Durability::Process);
    (0..100).for_each(|item| items.insert(number(item), value(item)).unwrap());
    db.persist().unwrap();
    items.insert("lost or not", "1").unwrap();
    storage.crash();
    drop((items, db));
    let (_db, items) = open(&storage.reopen(), Durability::Process);
    assert!((0..100).all(|item| items.get(number(item)).unwrap() == Some(value(item))));
}
