//! Removes all items of a prefix that are in levels, in one step
//! ([decision 0018](../../../../docs/decisions/0018-a-prefix-ends-in-one-record.md)).

use alluvium_base::HashRange;
use alluvium_io::sync::atomic::Ordering;

use super::flow::Flow;
use super::merge_part::write_parts;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::merge::YoungItems;

/// Removes all items of the prefix that are in the levels below the youngest: everything over the hashes of the prefix
/// is merged into one table without these items, which is usually empty. One record of the manifest makes the change.
///
/// Items of other prefixes with the same hash are kept in that table. Reads what is stored there, once. The space of
/// tables completely within the prefix's range is given back at once, that of tables at its ends when they are next
/// merged.
pub(crate) fn cut_prefix(shared: &Shared, keyspace: &KeyspaceShared, prefix: &[u8]) -> Result<()> {
    let Some(hash) = keyspace.hasher.prefix_hash(prefix) else { return Ok(()) };
    cut_hash(shared, keyspace, hash, prefix)
}

/// Like [`cut_prefix`], for a prefix with this hash.
fn cut_hash(shared: &Shared, keyspace: &KeyspaceShared, hash: u64, prefix: &[u8]) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    keyspace.check_present()?;
    let range = HashRange::of_high_half(hash);
    let last = {
        let version = keyspace.version.load();
        if !version.body.has_tables_below(0, range) {
            return Ok(());
        }
        version.body.last_level()
    };
    let flow = Flow::without_prefix(last, prefix);
    let counts = write_parts(shared, keyspace, &flow, &YoungItems::default(), [range].into_iter())?;
    shared.blobs.unhide(&counts.placed);
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_base::PrefixRule;
    use alluvium_io::{SimulatedClock, SimulatedStorage};

    use super::*;
    use crate::{Db, Environment, KeyspaceOptions};

    #[test]
    fn other_prefixes_of_the_same_hash_stay() {
        let environment = Environment {
            clock: Arc::new(SimulatedClock::default()),
            random_seed: 5,
            ..Environment::over(Arc::new(SimulatedStorage::new(3)))
        };
        let db = Db::builder("ties").background(false).environment(environment).open().unwrap();
        let rule = PrefixRule::Delimiter { byte: b'/' };
        let items = db.keyspace_with("items", &KeyspaceOptions::semi_sorted(rule)).unwrap();
        for number in 0..500 {
            items.insert(format!("one/{number}"), "1").unwrap();
            items.insert(format!("other/{number}"), "2").unwrap();
        }
        items.remove("one/0").unwrap();
        db.compact().unwrap();
        // As if "two" had the hash of "one".
        let hash = items.shared.hasher.prefix_hash(b"one").unwrap();
        cut_hash(db.shared(), &items.shared, hash, b"two").unwrap();
        assert_eq!(items.scan_prefix("one").unwrap().count(), 499);
        cut_hash(db.shared(), &items.shared, hash, b"one").unwrap();
        assert_eq!(items.scan_prefix("one").unwrap().count(), 0);
        assert_eq!(items.scan_prefix("other").unwrap().count(), 500);
        assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    }
}
