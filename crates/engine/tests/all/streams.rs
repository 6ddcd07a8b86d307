//! Lookups of a stream of keys: none waits for later ones.

use std::cell::Cell;

use alluvium::Db;

const KEYS: u64 = 20_000;
const IN_FLIGHT: usize = 8;

/// Without a bound, a device that answers at once, or one to which reads are submitted slowly, would starve the keys
/// that were read first, and their pages would accumulate in memory.
#[test]
fn answers_stay_close_behind_the_keys_taken() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path()).unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..KEYS {
        items.insert(number.to_le_bytes(), number.to_be_bytes()).unwrap();
    }
    db.compact().unwrap();
    let taken = Cell::new(0_u64);
    let keys = (0..KEYS).inspect(|_| taken.set(taken.get() + 1)).map(u64::to_le_bytes);
    let (mut answered, mut ahead_max) = (0, 0);
    items
        .get_each(keys, IN_FLIGHT, |key, value| {
            assert_eq!(value, Some(&u64::from_le_bytes(key).to_be_bytes()[..]));
            ahead_max = ahead_max.max(taken.get() - answered);
            answered += 1;
        })
        .unwrap();
    assert_eq!(answered, KEYS);
    // In flight, done, made ready, and the one that was fetched to see whether there is any.
    assert!(ahead_max <= 3 * IN_FLIGHT as u64 + 1, "{ahead_max} keys on their way");
}
